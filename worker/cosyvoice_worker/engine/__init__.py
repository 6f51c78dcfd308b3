"""The engine: the process that holds the model. The front starts it and talks to it over one socket (channel.py)."""
