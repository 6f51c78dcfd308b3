"""The CosyVoice operator: turns CosyVoiceModel objects into staged, warm, versioned workers."""
