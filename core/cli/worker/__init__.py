"""``fencepost worker``: a worker as a process."""
