"""The effect ``remote``: has another service do the work, over HTTP, once (contract §9).

Written to be copied: it uses ``fencepost.plugins`` and httpx, nothing else of Fencepost's, and
docs/how-to/make-your-own-remote-effect.md walks through it. ``plugin.py`` has the hooks and the order of things,
``answers.py`` what each answer means, ``settings.py`` what is checked first, ``exchange.py`` the HTTP. The other
half is ``fencepost.effects.receiver``.
"""

from __future__ import annotations

from .plugin import Remote

__all__ = ["Remote"]
