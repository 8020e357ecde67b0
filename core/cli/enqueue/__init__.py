"""``fencepost enqueue``: a document of records, or JSON Lines, becomes jobs."""
