"""Receipts: what an effect did, written once; and the rules by which two of them are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard

from ..errors import InvalidInput, LimitExceeded, ReceiptConflict
from .checks import MAX_INT, check_int
from .documents import (
    JSON,
    canonical,
    compact,
    parse,
)
from .inputs import check_name, is_name
from .job import DEFAULT_EFFECT

MAX_OUTCOME_BYTES: Final = 64 * 1024
RESERVED: Final = frozenset({"id", "input_sha256", "effect", "effect_version"})
"""Keys of a receipt that belong to Fencepost; no outcome may use them."""

MAX_OUTCOME_DEPTH: Final = 100
"""Well below what an encoder can follow, so that no ledger fails on what an attempt has accepted."""

_PLAIN_KEYS: Final = 32
_PLAIN_CHARACTERS: Final = 128
"""A character takes at most six bytes in JSON: 32 keys and values of 128 characters stay below the limit."""


class Receipt(NamedTuple):
    """The immutable record that an effect was applied to an input."""

    id: str
    input_sha256: str
    outcome: Mapping[str, JSON]
    effect: str = DEFAULT_EFFECT
    effect_version: str | None = None

    def document(self) -> dict[str, JSON]:
        """The receipt as it is stored. The default effect's receipts do not name their effect."""
        if self.effect == DEFAULT_EFFECT:
            return {"id": self.id, "input_sha256": self.input_sha256, **self.outcome}
        head: dict[str, JSON] = {"id": self.id, "input_sha256": self.input_sha256, "effect": self.effect}
        if self.effect_version is not None:
            head["effect_version"] = self.effect_version
        return head | dict(self.outcome)

    def same_as(self, other: Receipt) -> bool:
        """Equal by value and JSON type; the order of keys does not matter."""
        return (
            self.id == other.id
            and self.input_sha256 == other.input_sha256
            and self.effect == other.effect
            and self.effect_version == other.effect_version
            and canonical(self.outcome) == canonical(other.outcome)
        )

    @classmethod
    def from_document(cls, document: object) -> Receipt:
        """Read a stored receipt.

        Raises:
            InvalidInput: a part is missing or of the wrong type.
        """
        if not isinstance(document, dict):
            raise InvalidInput("a receipt must be a JSON object")
        outcome = dict(document)
        id, digest = outcome.pop("id", None), outcome.pop("input_sha256", None)
        effect, version = outcome.pop("effect", DEFAULT_EFFECT), outcome.pop("effect_version", None)
        check_name(id, "id")
        if not isinstance(digest, str):
            raise InvalidInput("a receipt must carry input_sha256 as a string")
        check_name(effect, "effect")
        if not (version is None or isinstance(version, str)):
            raise InvalidInput("effect_version of a receipt must be a string")
        return cls(id, digest, outcome, effect, version)


@dataclass(frozen=True, slots=True)
class Published:
    """The receipt that is now stored, and whether it was there before."""

    receipt: Receipt
    reused: bool


class Settlement(NamedTuple):
    """One finished attempt: store its receipt, which has the same id, and complete the job under this fence."""

    id: str
    version: int
    receipt: Receipt


class Settled(NamedTuple):
    """What became of a settlement.

    ``completed`` False without a conflict means that the lease was lost; the receipt is stored all the same.
    """

    id: str
    version: int
    completed: bool
    reused: bool
    conflict: bool


def check_receipt(receipt: Receipt) -> Receipt:
    """Return ``receipt`` if every ledger reads back the same after storing it.

    Raises:
        InvalidInput: a reserved key, a bad name, no JSON.
        LimitExceeded: the outcome has more than 64 KiB.
    """
    _check_head(receipt)
    check_outcome(receipt.outcome)
    return receipt


def check_settlements(settlements: Sequence[Settlement]) -> None:
    """Refuse one whose receipt is another job's, or whose fence is no whole number.

    Raises:
        InvalidInput: says which, and why.
    """
    for id, version, receipt in settlements:
        if receipt.id != id:
            raise InvalidInput(f"job {id!r} cannot be settled by the receipt of {receipt.id!r}")
        if type(version) is not int or not -MAX_INT <= version <= MAX_INT:
            check_int(version, f"the version of {id!r}", low=-MAX_INT)


def check_receipts(receipts: Sequence[Receipt]) -> None:
    """``check_receipt`` of each; of the usual ones in a fifth of the time.

    Raises:
        InvalidInput, LimitExceeded: as ``check_receipt``.
    """
    if not _are_plain(receipts):
        for receipt in receipts:
            check_receipt(receipt)


def _are_plain(receipts: Sequence[Receipt]) -> bool:
    """Whether all of them are the default effect's, with outcomes as most are."""
    ids, digests, outcomes, effects, versions = zip(*receipts, strict=True) if receipts else ((),) * 5
    return (
        set(effects) == {DEFAULT_EFFECT}
        and set(versions) == {None}
        and set(map(type, digests)) == {str}
        and all(map(is_name, ids))
        and all(map(_is_plain, outcomes))
    )


def encode_receipts(receipts: Sequence[Receipt]) -> str:
    """One JSON object from ids to documents, for a ledger that stores a batch; each passes ``check_receipt``.

    Raises:
        InvalidInput, LimitExceeded: as ``check_receipt``.
    """
    check_receipts(receipts)
    return compact({receipt.id: receipt.document() for receipt in receipts})


def _check_head(receipt: Receipt) -> None:
    check_name(receipt.id, "id")
    if not isinstance(receipt.input_sha256, str):
        raise InvalidInput(f"receipt of {receipt.id!r}: input_sha256 must be a string")
    if receipt.effect != DEFAULT_EFFECT:
        check_name(receipt.effect, "effect")
        if not (receipt.effect_version is None or isinstance(receipt.effect_version, str)):
            raise InvalidInput(f"receipt of {receipt.id!r}: effect_version must be a string")
    elif receipt.effect_version is not None:
        raise InvalidInput(f"receipt of {receipt.id!r}: those of {DEFAULT_EFFECT!r} carry no effect_version")


def check_outcome(value: object) -> dict[str, JSON]:
    """Return the outcome of an effect if it can stand in a receipt.

    Raises:
        InvalidInput: not a JSON object, it uses a reserved key, or it is nested more than 100 deep.
        LimitExceeded: more than 64 KiB as JSON.
    """
    if _is_plain(value):
        return value
    outcome = _check_shape(value)
    try:
        size = len(compact(outcome).encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"an effect's outcome is not JSON: {error}") from error
    if size > MAX_OUTCOME_BYTES:
        raise LimitExceeded(
            f"an effect's outcome has {size:,} bytes, at most {MAX_OUTCOME_BYTES:,} are allowed"
        )
    return outcome


def own_outcome(value: object) -> dict[str, JSON]:
    """A copy of an effect's outcome, which the effect can no longer change; validated as by ``check_outcome``.

    A receipt is stored a while after its effect returned, which may use the same dict for its next job.
    """
    if _is_plain(value):
        return dict(value)
    copy = parse(compact(check_outcome(value)).encode("utf-8"), what="an effect's outcome")
    assert isinstance(copy, dict), "an outcome is an object"
    return copy


def _is_plain(value: object) -> TypeGuard[dict[str, JSON]]:
    """Whether it is an outcome as most are, a few figures and short words: those need no encoding to be judged."""
    if type(value) is not dict or len(value) > _PLAIN_KEYS or not value.keys().isdisjoint(RESERVED):
        return False
    for key, member in value.items():
        if type(key) is not str or len(key) > _PLAIN_CHARACTERS or not key.isascii():
            return False
        kind = type(member)
        if kind is int:
            if not -MAX_INT <= member <= MAX_INT:
                return False
        elif kind is str:
            if len(member) > _PLAIN_CHARACTERS or not member.isascii():
                return False
        elif not (member is None or kind is bool):
            return False
    return True


def _check_shape(value: object) -> dict[str, JSON]:
    """Return the outcome if it is an object of free keys that are strings all the way down."""
    if not isinstance(value, dict):
        raise InvalidInput(f"an effect's outcome must be a JSON object (a dict), not {type(value).__name__}")
    if not value.keys().isdisjoint(RESERVED):
        raise InvalidInput(f"an effect's outcome may not use the key {sorted(RESERVED & value.keys())[0]!r}")
    _check_keys(value, 1)
    return value


def _check_keys(value: object, depth: int) -> None:
    """Refuse keys that the encoder would turn into strings: what is stored would not be what was given."""
    if depth > MAX_OUTCOME_DEPTH and isinstance(value, (dict, list, tuple)):
        raise InvalidInput(f"an effect's outcome is not JSON: nested more than {MAX_OUTCOME_DEPTH} deep")
    if isinstance(value, dict):
        for key, member in value.items():
            if not isinstance(key, str):
                raise InvalidInput(f"an effect's outcome has the key {key!r:.40}, which is no string")
            _check_keys(member, depth + 1)
    elif isinstance(value, (list, tuple)):
        for member in value:
            _check_keys(member, depth + 1)


def conflict(stored: Receipt, expected: Receipt) -> ReceiptConflict:
    """The error that says in which part two receipts of one id differ."""
    for part in ("input_sha256", "effect", "effect_version", "outcome"):
        mine, theirs = getattr(expected, part), getattr(stored, part)
        if canonical(mine) != canonical(theirs):
            return ReceiptConflict(
                f"receipt of {stored.id!r}: the stored {part} is {canonical(theirs):.120}, expected was "
                f"{canonical(mine):.120}; the stored receipt stays, look at both before you resolve the job"
            )
    return ReceiptConflict(f"receipt of {stored.id!r}: it is not the one that was expected")
