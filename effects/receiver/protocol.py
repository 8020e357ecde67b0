"""What goes over the wire: the headers of a delivery, the answers, and the declaration."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from .rules import Decision

CONTRACT_VERSION: Final = 1
WELL_KNOWN: Final = "/.well-known/fencepost-receiver"
"""Below the receiver's base: the declaration, and one segment further down the receipt of a key."""
MAX_ANSWER_BYTES: Final = 60_000
"""What a receipt may hold of an answer, with room for the rest of the receipt."""
MAX_KEY_LENGTH: Final = 255
RETRY_AFTER_S: Final = 1

Headers = Iterable[tuple[str, str]]

# An sf-string (RFC 8941 §3.3.3): printable ASCII in quotes; only the quote and the backslash are escaped.
_STRING: Final = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"', re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_FENCE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_SHA_256: Final = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):", re.ASCII)


class Malformed(ValueError):
    """A header of a delivery is missing or not what the contract says."""


class Refused(Exception):
    """Raised by a service's work: it will not be done, and trying again would not change that.

    ``status`` is that of the answer: a 4xx that does not mean something else to the sender already.
    """

    def __init__(self, reason: str, *, status: int = 403) -> None:
        super().__init__(reason)
        if not 400 <= status < 500 or status in _TAKEN:
            raise ValueError(f"status {status}: a refusal is a 4xx other than {sorted(_TAKEN)}")
        self.status = status


_TAKEN: Final = frozenset({401, 408, 409, 412, 422, 425, 429})


@dataclass(frozen=True, slots=True)
class Delivery:
    """One well-formed request to have something done."""

    key: str
    fence: int
    body: bytes
    job: str | None = None
    content_type: str | None = None

    @property
    def digest(self) -> str:
        """SHA-256 of the body, in lower-case hex."""
        return hashlib.sha256(self.body).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, for whatever speaks HTTP."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)

    def all_headers(self) -> list[tuple[str, str]]:
        """The headers, with those that every answer has."""
        return [*self.headers, ("Content-Length", str(len(self.body))), ("Cache-Control", "no-store")]


def header(headers: Headers, name: str) -> str | None:
    """The value of a header; where it occurs several times the values are joined, as RFC 9110 §5.3 has it."""
    found = [value.strip() for key, value in headers if key.lower() == name.lower()]
    return ", ".join(found) if found else None


def read_delivery(headers: Headers, body: bytes) -> Delivery:
    """Read the delivery that a request carries.

    Raises:
        Malformed: the key, the fence or the digest is missing or malformed, or the digest is not the body's.
    """
    headers = list(headers)
    _check_digest(header(headers, "Content-Digest"), body)
    return Delivery(
        key=read_key(header(headers, "Idempotency-Key")),
        fence=_read_fence(header(headers, "Fencepost-Fence")),
        body=body,
        job=_plain(headers, "Fencepost-Job"),
        content_type=_plain(headers, "Content-Type"),
    )


def read_key(value: str | None) -> str:
    """The key in an ``Idempotency-Key`` header.

    Raises:
        Malformed: it is missing, or not a quoted string of 1 to 255 characters.
    """
    if value is None:
        raise Malformed("the header Idempotency-Key is missing")
    match = _STRING.fullmatch(value)
    if match is None:
        raise Malformed('Idempotency-Key must be one string in quotes, such as "fp1-0123"')
    key = re.sub(r"\\(.)", r"\1", match[1])
    if not 1 <= len(key) <= MAX_KEY_LENGTH:
        raise Malformed(f"Idempotency-Key has {len(key)} characters; 1 to {MAX_KEY_LENGTH} are allowed")
    return key


def _plain(headers: Headers, name: str) -> str | None:
    """A header that is stored for people to read, and could steer the terminal on which they read it."""
    value = header(headers, name)
    if value is not None and _CONTROL.search(value):
        raise Malformed(f"{name} has a control character")
    return value


def _read_fence(value: str | None) -> int:
    if value is None:
        raise Malformed("the header Fencepost-Fence is missing")
    if _FENCE.fullmatch(value) is None:
        raise Malformed("Fencepost-Fence must be a whole number of 0 or more")
    return int(value)


def _check_digest(value: str | None, body: bytes) -> None:
    if value is None:
        raise Malformed("the header Content-Digest is missing")
    # A dictionary of algorithms (RFC 9530): others may stand beside the one that is understood.
    found = [match for member in value.split(",") if (match := _SHA_256.fullmatch(member.strip()))]
    if not found:
        raise Malformed("Content-Digest must hold sha-256=:BASE64:")
    try:
        digest = base64.b64decode(found[-1][1], validate=True)
    except binascii.Error as error:
        raise Malformed(f"Content-Digest is not base64: {error}") from error
    if digest != hashlib.sha256(body).digest():
        raise Malformed("Content-Digest is not the digest of the body that arrived")


def declaration(keys_kept_s: int | None) -> Answer:
    """How a receiver declares that it keeps the contract; ``keys_kept_s`` None means for ever."""
    return _json({"fencepost_receiver": CONTRACT_VERSION, "keys_kept_s": keys_kept_s})


def encode_answer(value: object) -> str:
    """What the work answered, as it is stored and sent.

    Raises:
        ValueError, TypeError: it is no JSON object of at most 60,000 bytes.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"the work must return a dict, which becomes the receipt, not {type(value).__name__}")
    answer = json.dumps(dict(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    size = len(answer.encode("utf-8"))
    if size > MAX_ANSWER_BYTES:
        raise ValueError(f"the work's answer has {size:,} bytes; at most {MAX_ANSWER_BYTES:,} are allowed")
    return answer


def done(answer: str) -> Answer:
    """The work was done just now."""
    return Answer(201, answer.encode("utf-8"))


def replayed(answer: str) -> Answer:
    """The work was done before; the same body again."""
    head = Answer(200, answer.encode("utf-8"))
    return Answer(200, head.body, (*head.headers, ("Idempotent-Replayed", "true")))


def receipt(answer: str) -> Answer:
    """The answer to a question by key."""
    return Answer(200, answer.encode("utf-8"))


def refusal(decision: Decision) -> Answer:
    """The answer to a delivery that is neither done nor replayed."""
    if decision is Decision.STALE_FENCE:
        return problem(412, "stale-fence", "A newer attempt at this job has been here; nothing was done.")
    if decision is Decision.OTHER_DIGEST:
        return problem(422, "other-digest", "This key stands for another body, and stays with it.")
    if decision is Decision.IN_PROGRESS:
        return problem(409, "in-progress", "This key is being worked on.", retry_after_s=RETRY_AFTER_S)
    raise ValueError(f"{decision} is no refusal")


def problem(
    status: int,
    kind: str,
    detail: str,
    *,
    retry_after_s: int | None = None,
    headers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    """An error for people and programs (RFC 9457); ``kind`` names it for programs."""
    document = {
        "type": f"urn:fencepost:receiver:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    if retry_after_s is not None:
        headers = (*headers, ("Retry-After", str(retry_after_s)))
    return Answer(status, _json(document).body, (("Content-Type", "application/problem+json"), *headers))


def _json(document: object) -> Answer:
    return Answer(200, json.dumps(document, separators=(",", ":")).encode("utf-8"))
