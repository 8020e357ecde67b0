"""``fencepost jobs`` and ``fencepost dead``: look for jobs, understand one, and decide about it."""
