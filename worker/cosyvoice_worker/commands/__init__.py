"""The sub-commands: modules with `add_parser(subparsers)` and `run(args) -> int`, and optionally `early(argv)`.

`serve` has to be light: neither this package nor that module imports anything of weight when it is imported.
"""
