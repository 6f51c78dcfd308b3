"""A virtual machine with a kernel of its own, for what this machine's kernel cannot show: cgroup v2 above all.

Emulated in software, so it runs everywhere, about ten times slower than the machine itself. It has no disk: its root
is this machine's, read-only, so every program that is installed here is there, at the same path.
"""
