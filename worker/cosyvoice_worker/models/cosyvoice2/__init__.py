"""CosyVoice 2: text and a voice to 24 kHz speech."""
