"""``python -m fencepost``: the same as the command ``fencepost``.

This file is installed as ``fencepost/__main__.py``, and alone in its folder for that: ``fencepost`` is a namespace of
three packages, and has no ``__init__.py``.
"""

from fencepost.core.cli import main

main()
