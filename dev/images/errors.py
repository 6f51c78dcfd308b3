"""What can go wrong while images are built or run."""

from __future__ import annotations


class ImageError(Exception):
    """An image could not be built, found, imported, pushed or run; the message says what to do about it."""
