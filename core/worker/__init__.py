"""The worker: claims jobs, has effects applied to them, and settles what has finished."""
