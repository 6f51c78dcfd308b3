"""What can go wrong with the local cluster, told so that it can be acted on."""

from __future__ import annotations


class ClusterError(Exception):
    """Something needed is missing or did not happen. The text says what, where and what to do."""


class ArchiveError(ClusterError):
    """An image archive is not what it should be."""
