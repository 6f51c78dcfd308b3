"""The node agent: sets memory.high on the worker containers of one node, and keeps it. Standard library only.

pods       which containers, and what their models want, read from the API server's answer
tree       where a container's cgroup is, whichever driver and runtime made it
decision   what to do with it; pure
keeper     one pass over the kernel's files
podlist    asks the API server
__main__   again and again, until told to stop

It runs on every node and so has to be small; it may write to every cgroup of its node and so does nothing else.
"""
