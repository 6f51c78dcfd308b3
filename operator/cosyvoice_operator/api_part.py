"""The base of every part of a CosyVoiceModel."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of every part of a CosyVoiceModel; the field names on the wire are the camelCase of the ones here."""
