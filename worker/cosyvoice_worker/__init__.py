"""The CosyVoice worker: stages weights, maps them, and serves speech."""
