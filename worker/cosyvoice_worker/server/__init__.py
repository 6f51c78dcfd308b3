"""The front: the torch-free process that answers HTTP and looks after the engine process."""
