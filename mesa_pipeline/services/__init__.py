"""Servers that run as this project's own child processes, for whoever has none: nothing to install, nothing to configure."""
