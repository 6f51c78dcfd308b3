"""Model families the worker can compute, each in plain PyTorch."""
