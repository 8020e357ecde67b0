"""``fencepost schedule``: jobs that are enqueued again and again."""
