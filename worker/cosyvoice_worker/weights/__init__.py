"""Weights: staged files become the parameters of a module without being copied."""
