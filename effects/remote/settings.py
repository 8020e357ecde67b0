"""The settings of ``remote``, and what is refused before anything is sent."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from fencepost.plugins import PluginError, Setting

MAX_ANSWER_BYTES: Final = 60_000
"""A receipt has room for 64 KiB; the key goes in, too."""

SETTINGS: Final = {
    "url": Setting("Where the work is sent: the receiver's base.", required=True),
    "method": Setting("POST, PUT or PATCH.", default="POST"),
    "body": Setting("text: the job's text as it is; json: {id, text}.", default="text"),
    "headers": Setting("Further headers, such as content-type.", default={}),
    "token": Setting("A bearer token.", secret=True, env="FENCEPOST_REMOTE_TOKEN"),
    "connect_timeout_s": Setting("How long a connection may take.", default=5.0),
    "timeout_s": Setting("How long an answer may take.", default=30.0),
    "max_body_bytes": Setting("Larger bodies are refused at enqueue.", default=1024 * 1024),
    "plain_http": Setting("Allow http:// to other machines, without TLS.", default=False),
}

OURS: Final = frozenset(
    {"idempotency-key", "fencepost-job", "fencepost-fence", "content-digest", "authorization"}
    | {"content-length", "transfer-encoding", "host", "connection", "accept-encoding"}
)
"""Headers that the effect or its client sets."""

_LOOPBACK: Final = re.compile(r"127(\.[0-9]{1,3}){3}", re.ASCII)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)


def check(settings: Mapping[str, Any]) -> None:
    """Refuse settings with which nothing could be sent, or not safely."""
    try:
        url = urlsplit(settings["url"])
        _ = url.port
    except ValueError as error:
        raise PluginError(f"url {settings['url']!r}: {error}") from error
    if url.scheme not in ("http", "https") or not url.hostname:
        raise PluginError(f"url {settings['url']!r} must begin with https:// or http:// and name a host")
    if url.query or url.fragment or url.username or url.password:
        raise PluginError(
            "url must have no query, fragment, user or password; a token has a setting of its own"
        )
    if url.scheme == "http" and not settings["plain_http"] and not _is_here(url.hostname):
        raise PluginError(
            f"url {settings['url']!r} has no TLS: everybody on the way could read and change what is sent. Use "
            "https://, or set plain_http = true if the network is yours"
        )
    if settings["method"] not in ("POST", "PUT", "PATCH"):
        raise PluginError(f"method {settings['method']!r} must be POST, PUT or PATCH")
    if settings["body"] not in ("text", "json"):
        raise PluginError(f"body {settings['body']!r} must be text or json")
    for name, value in settings["headers"].items():
        if not (_HEADER_NAME.fullmatch(name) and isinstance(value, str) and _is_plain(value)):
            raise PluginError(f"the header {name!r} must have a plain name, and a string of visible ASCII")
        if name.lower() in OURS:
            raise PluginError(f"the header {name!r} is set by the effect itself")
    if settings["token"] is not None and not _is_plain(settings["token"]):
        raise PluginError("the token must consist of visible ASCII characters")
    for name in ("connect_timeout_s", "timeout_s", "max_body_bytes"):
        if not 0 < settings[name] < float("inf"):
            raise PluginError(f"{name} is {settings[name]}, it must be more than 0")


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or _LOOPBACK.fullmatch(host) is not None


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()
