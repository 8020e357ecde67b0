"""A request for an effect that is called directly, without a ledger and a worker."""

from __future__ import annotations

import logging
import time

from ...core.model.effect import EffectRequest


def make_request(
    text: str,
    *,
    effect: str = "effect",
    id: str = "job-1",
    attempt: int = 1,
    fence: int = 1,
    namespace: str = "test",
    lease_s: float = 30.0,
) -> EffectRequest:
    """What ``effect_apply`` would be given for the first attempt of a job with this text."""
    return EffectRequest(
        id=id,
        text=text,
        attempt=attempt,
        fence=fence,
        effect=effect,
        namespace=namespace,
        deadline=time.monotonic() + lease_s,
        extend=lambda request: None,
        logger=logging.getLogger(f"fencepost.effects.{effect}"),
    )
