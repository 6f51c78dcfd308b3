"""One file a question, one table each: `python -m benchmarks.NAME [--quick]`, or all of them with `make bench`."""
