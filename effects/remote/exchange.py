"""One request and its answer over httpx: bounded in size and in time, no redirects, TLS verified."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from fencepost.plugins import PluginError, Retry

MAX_RETRY_AFTER_S: Final = 3_600.0
MAX_SHOWN: Final = 200


@dataclass(frozen=True, slots=True)
class Response:
    """What came back. As a text it is short enough for an error."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    cut_off: bool = False
    """The body was larger than the limit."""

    @property
    def replayed(self) -> bool:
        """Whether the receiver says that it did the work before."""
        return self.headers.get("idempotent-replayed", "").strip().lower() == "true"

    @property
    def location(self) -> str:
        """Where it redirects to."""
        return self.headers.get("location", "")

    @property
    def retry_after_s(self) -> float | None:
        """What it asks for, within an hour; None if it does not say."""
        value = self.headers.get("retry-after", "").strip()
        if not value:
            return None
        if value.isascii() and value.isdigit():
            return min(float(value), MAX_RETRY_AFTER_S)
        from email.utils import parsedate_to_datetime

        try:
            wait_s = parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
        return min(max(wait_s, 0.0), MAX_RETRY_AFTER_S)

    def json(self) -> Any:
        """The body as strict JSON that UTF-8 can carry; None if it is not that."""
        try:
            value = json.loads(self.body, parse_constant=_refuse)
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
        except (ValueError, RecursionError):
            return None
        return value

    def __str__(self) -> str:
        document = self.json()
        detail = document.get("detail") if isinstance(document, dict) else None
        said = detail if isinstance(detail, str) else self.body.decode("utf-8", "replace")
        shown = " ".join(said.split())[:MAX_SHOWN]
        return f"{self.status} {shown!r}" if shown else str(self.status)


class Exchange:
    """A client for many threads; its connections are kept open between requests."""

    def __init__(self, *, connect_timeout_s: float, timeout_s: float) -> None:
        """Open nothing yet.

        Raises:
            PluginError: httpx is not installed.
        """
        try:
            import httpx
        except ImportError as error:
            raise PluginError("it needs httpx: pip install 'fencepost[http]'") from error
        self._httpx = httpx
        self._timeout_s = timeout_s
        self._client = httpx.Client(
            follow_redirects=False,
            timeout=httpx.Timeout(timeout_s, connect=connect_timeout_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
            headers={"user-agent": "fencepost-remote", "accept-encoding": "identity"},
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def exchange(
        self, method: str, url: str, *, headers: Mapping[str, str], limit: int, body: bytes = b""
    ) -> Response:
        """Send one request and read its answer, of which at most ``limit`` bytes.

        Raises:
            Retry: there was no whole answer in time; what became of the request is not known.
        """
        httpx = self._httpx
        until = time.monotonic() + self._timeout_s
        try:
            with self._client.stream(method, url, headers=dict(headers), content=body) as response:
                parts, size = [], 0
                for part in response.iter_raw():
                    parts.append(part)
                    size += len(part)
                    if size > limit:
                        break
                    if time.monotonic() > until:
                        raise Retry(f"{method} {url}: the answer took longer than {self._timeout_s:g} s")
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise Retry(f"{method} {url}: not sent, no connection{_through(url)}: {_named(error)}") from error
        except httpx.TransportError as error:
            raise Retry(
                f"{method} {url}: no answer, the outcome is not known{_through(url)}: {_named(error)}"
            ) from error
        return Response(
            url, response.status_code, dict(response.headers), b"".join(parts)[:limit], cut_off=size > limit
        )


def _through(url: str) -> str:
    """Name the environment variable that sends requests for ``url`` through a proxy, where one does."""
    from urllib.request import getproxies, proxy_bypass  # slow to load; it is what httpx goes by

    to, proxies = urlsplit(url), getproxies()
    kind = to.scheme if to.scheme in proxies else "all"
    if kind not in proxies or proxy_bypass(to.hostname or ""):
        return ""
    variable = next((name for name in os.environ if name.lower() == f"{kind}_proxy"), "the system's settings")
    proxy = proxies[kind] if "://" in proxies[kind] else f"//{proxies[kind]}"
    # Its user and password are not shown.
    return f" (through the proxy {urlsplit(proxy).netloc.rpartition('@')[2]} of {variable})"


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")
