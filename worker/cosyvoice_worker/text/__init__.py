"""Text before the model: normalised, split into pieces a few seconds long, encoded as ids. No torch."""
