"""The one place that holds the project's version."""

__version__ = "0.1.0"
