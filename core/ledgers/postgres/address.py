"""Where a PostgreSQL ledger is: the URL, the options in it that are ours, and how to name it without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ...errors import InvalidInput

DEFAULT_SCHEMA: Final = "public"

_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}", re.ASCII)
_CREDENTIALS: Final = re.compile(r"([^@/]*)@")
_HOST: Final = r"(?:\[[0-9A-Fa-f:.%\w]*\]|[\w.~%-]*)(?::[0-9]*)?"
_BODY: Final = re.compile(rf"{_HOST}(?:,{_HOST})*(?:/[^/@#?]*)?")
"""Hosts with their ports, then the database. What falls outside of it may be a part of a password."""
_OPTION: Final = re.compile(r"[\w%]+=.*", re.DOTALL)
_OURS: Final = ("fencepost_schema", "fencepost_listen")
_SECRETS: Final = ("password", "sslpassword")
_PATIENCE: Final = {
    # A peer that is gone is noticed within a minute, not within hours; the URL may say otherwise.
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "fallback_application_name": "fencepost",
}
_SWITCH: Final = {"on": True, "off": False}


@dataclass(frozen=True, slots=True)
class Address:
    """One ledger in one database."""

    conninfo: str
    """What libpq takes, with our defaults."""
    location: str
    """The URL without its secrets, for people to read."""
    schema: str
    listen: bool
    secrets: tuple[str, ...]
    """What no message may show."""

    @property
    def channel(self) -> str:
        """The channel of the wake-ups."""
        return f"fencepost_{self.schema}"

    def hide_secrets(self, text: str) -> str:
        """The text with every secret blotted out."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return text


def parse_address(url: str, *, schema: str | None = None, listen: bool | None = None) -> Address:
    """Read a URL of libpq's form, which may also say ``fencepost_schema=NAME`` and ``fencepost_listen=on|off``.

    Raises:
        InvalidInput: libpq does not understand it, or an option of ours is wrong. No secret is told.
    """
    head, user, body, query = _split(check_url(url))
    location = _join(head, user.partition(":")[0], body, _without(query, _SECRETS))
    options = {unquote(name): unquote(value) for name, _, value in (pair.partition("=") for pair in query)}
    try:
        given = conninfo_to_dict(_join(head, user, body, _without(query, _OURS)))
    except psycopg.Error:
        # What libpq says quotes what it could not read, which may be the password.
        raise _not_understood() from None
    if schema is None:
        schema = options.get("fencepost_schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema):
        raise InvalidInput(
            f"{location}: the schema {schema!r:.80} must match [a-z_][a-z0-9_]{{0,47}}: lower-case letters, digits, _"
        )
    if listen is None:
        switch = options.get("fencepost_listen", "on")
        if switch not in _SWITCH:
            raise InvalidInput(f"{location}: fencepost_listen is {switch!r:.40}, it must be on or off")
        listen = _SWITCH[switch]
    # Whatever the URL or PGCLIENTENCODING say: another encoding could not carry every claimant, reason and error.
    settings: dict[str, Any] = {**_PATIENCE, **given, "client_encoding": "UTF8"}
    secrets = {str(settings[name]) for name in _SECRETS if settings.get(name)}
    secrets |= {quote(secret, safe="") for secret in secrets}
    return Address(
        make_conninfo("", **settings), location, schema, listen, tuple(sorted(secrets, key=len, reverse=True))
    )


def check_url(url: str) -> str:
    """Return the URL if its parts are where libpq will look for them.

    A password with a special character in it moves the borders of the parts, and would then be shown as a host, a port
    or a database.

    Raises:
        InvalidInput: it does not show the URL.
    """
    head, _, body, query = _split(url)
    if not head.endswith("://") or not _BODY.fullmatch(body) or not all(map(_OPTION.fullmatch, query)):
        raise _not_understood()
    return url


def _not_understood() -> InvalidInput:
    return InvalidInput(
        "the URL of the store is none that PostgreSQL understands (it is not shown, because it may hold a password); "
        "its form is postgresql://user:password@host:port/database?option=value. Write special characters of the "
        "password as in %40 for @, %2F for /, %23 for #, %3A for : and %3F for ?"
    )


def _split(url: str) -> tuple[str, str, str, list[str]]:
    """The scheme, user and password, hosts and database, options: divided where libpq divides them."""
    head, slashes, rest = url.partition("://")
    credentials = _CREDENTIALS.match(rest)
    body, _, query = rest[credentials.end() if credentials else 0 :].partition("?")
    return (
        head + slashes,
        credentials[1] if credentials else "",
        body,
        [pair for pair in query.split("&") if pair],
    )


def _join(head: str, user: str, body: str, query: list[str]) -> str:
    return head + (f"{user}@" if user else "") + body + ("?" if query else "") + "&".join(query)


def _without(query: list[str], names: tuple[str, ...]) -> list[str]:
    return [pair for pair in query if unquote(pair.partition("=")[0]) not in names]
