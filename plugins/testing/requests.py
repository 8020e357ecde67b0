"""A request for an effect that is called directly, without a ledger and a worker."""

from __future__ import annotations

import logging
import time

from ...core.effect import EffectRequest
from ...core.inputs import text_sha256
from ...core.keys import idempotency_key


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
    digest = text_sha256(text)
    return EffectRequest(
        id=id,
        text=text,
        input_sha256=digest,
        attempt=attempt,
        fence=fence,
        idempotency_key=idempotency_key(namespace, effect, id, digest),
        deadline=time.monotonic() + lease_s,
        extend=lambda request: None,
        log=logging.getLogger(f"fencepost.effects.{effect}"),
    )
