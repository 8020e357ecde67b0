"""The effects that ship, each written with nothing but what any author can use: ``fencepost.plugins``."""
