"""Voices: packs of prompt tokens, prompt mel and speaker embedding; where they are found, and how one is made."""
