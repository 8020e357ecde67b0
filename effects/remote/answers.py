"""What the receiver's answers mean: from a response to an outcome, or to the signal that says how the job goes on."""

from __future__ import annotations

from typing import Any, Final

from fencepost.plugins import (
    EffectRequest,
    Hold,
    LeaseLost,
    PluginError,
    Reject,
    Retry,
)

from .exchange import Response
from .settings import MAX_ANSWER_BYTES

CONTRACT_VERSION: Final = 1
GUIDE: Final = "docs/how-to/build-a-receiver.md"
_LATER: Final = frozenset({408, 425, 429})
"""These 4xx are about the moment, not about the request."""


def keys_kept_s(response: Response) -> int | None:
    """How long the receiver keeps keys, by its declaration; None means for ever.

    Raises:
        Retry: it cannot answer now.
        PluginError: it does not declare the contract.
    """
    _check_moment(response)
    document = response.json() if response.status == 200 else None
    if not isinstance(document, dict) or document.get("fencepost_receiver") != CONTRACT_VERSION:
        raise PluginError(
            f"{response.url} does not declare a receiver that keeps idempotency keys (it said {response}), so "
            f"nothing is sent: a repetition could be done twice. {GUIDE} shows what to build, and "
            "`fencepost receiver check URL` whether it is right"
        )
    kept_s = document.get("keys_kept_s")
    if kept_s is not None and not (type(kept_s) is int and kept_s > 0):
        raise PluginError(
            f"{response.url}: keys_kept_s must be a whole number of seconds, or null for ever; it is {kept_s!r}"
        )
    return kept_s


def check_age(request: EffectRequest, kept_s: int | None) -> None:
    """Hold a job whose key the receiver may have forgotten: it would take a repetition for new work."""
    if kept_s is None or request.fence <= 1:
        return
    if request.first_claimed_at_ms is None or request.now_ms is None:
        raise Hold(
            "when the job was first claimed is not known, and the receiver forgets keys: look there first"
        )
    age_s = (request.now_ms - request.first_claimed_at_ms) / 1_000
    if age_s >= kept_s:
        raise Hold(
            f"first claimed {age_s:,.0f} s ago, and the receiver keeps keys for {kept_s:,} s: an earlier attempt "
            "may have been done and forgotten; look there, then resolve the job"
        )


def stored_outcome(request: EffectRequest, response: Response) -> dict[str, Any] | None:
    """What the receiver answers to the question by key; None if it has no receipt.

    Raises:
        Retry: it is at it, or cannot answer now.
        Hold: the work was done, but the answer is of no use.
        PluginError: it does not answer as the contract says.
    """
    if response.status == 200:
        return _outcome(request, response)
    if response.status == 404:
        return None
    if response.status == 409:
        raise Retry(f"the receiver is still at it: {response}", after_s=response.retry_after_s)
    _check_moment(response)
    raise PluginError(f"{response.url} must answer 200, 404 or 409 for a key, and said {response}")


def outcome_of_send(request: EffectRequest, response: Response) -> dict[str, Any]:
    """What the receiver answers to the delivery.

    Raises:
        LeaseLost, Hold, Retry, Reject: the work is not known to be done; each says why.
        PluginError: the url redirects.
    """
    status = response.status
    if status == 201 or (status == 200 and response.replayed):
        return _outcome(request, response)
    if status == 412:
        raise LeaseLost(f"the receiver has seen a newer attempt than {request.fence}: {response}")
    if status == 422:
        raise Hold(f"the receiver knows the key with another body: {response}")
    if status == 409:
        raise Retry(f"the receiver is still at it: {response}", after_s=response.retry_after_s)
    _check_moment(response)
    if 400 <= status < 500:
        raise Reject(f"the receiver refused: {response}")
    if 300 <= status < 400:
        raise PluginError(
            f"{response.url} redirects to {response.location!r}, which is not followed: set url to where the "
            "receiver is"
        )
    raise Hold(
        f"the receiver said {response}, which is neither 201 nor a replay, so whether the work was done is not "
        f"known; {GUIDE} says how a receiver answers"
    )


def _check_moment(response: Response) -> None:
    if response.status >= 500 or response.status in _LATER:
        raise Retry(f"{response.url} cannot answer now: {response}", after_s=response.retry_after_s)


def _outcome(request: EffectRequest, response: Response) -> dict[str, Any]:
    """The receipt's: the same for a first answer and for a replay."""
    answer = None if response.cut_off else response.json()
    if not isinstance(answer, dict):
        raise Hold(
            f"the receiver did the work, but its answer is no JSON object of at most {MAX_ANSWER_BYTES:,} bytes "
            f"and cannot become a receipt: {response}"
        )
    return {"key": request.idempotency_key, "answer": answer}
