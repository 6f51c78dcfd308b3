"""From nothing to speech: `make demo`."""
