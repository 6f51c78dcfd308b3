"""Models to develop and test with: a tiny one whose every number is fixed, and one of the published size."""
