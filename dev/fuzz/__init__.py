"""Damaged and hostile bytes for everything that reads bytes from strangers. `make fuzz`."""
