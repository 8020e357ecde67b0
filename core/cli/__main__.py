"""``python -m fencepost.core.cli``: the same as the command ``fencepost``."""

from . import main

main()
