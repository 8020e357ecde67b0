"""A cursor of our own on any connection: none of the ways of a caller's connection reaches our statements."""

from __future__ import annotations

from functools import cache
from typing import Any

import psycopg
from psycopg.adapt import AdaptersMap
from psycopg.postgres import register_default_adapters
from psycopg.pq import Format, PipelineStatus
from psycopg.rows import tuple_row
from psycopg.types.array import register_all_arrays

from .arrays import adapt


@cache
def _adapters() -> AdaptersMap:
    """psycopg's own adapters, without what a program has registered for all connections or for one."""
    adapters = AdaptersMap(types=psycopg.adapters.types)
    register_default_adapters(adapters)
    register_all_arrays(adapters)
    adapt(adapters)
    return adapters


class OwnCursor(psycopg.Cursor[tuple[Any, ...]]):
    """A cursor with parameters bound by the server, binary results, tuples as rows and psycopg's own adapters.

    A caller's connection may have another cursor class (Django's makes ``ClientCursor``), row factory or adapters.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        super().__init__(connection, row_factory=tuple_row)
        self.format = Format.BINARY

    @property
    def adapters(self) -> AdaptersMap:
        """The same for every connection."""
        return _adapters()


def in_pipeline(connection: psycopg.Connection[Any]) -> bool:
    """Whether the connection is in a pipeline, where results come only when they are asked for."""
    return connection.pgconn.pipeline_status != PipelineStatus.OFF


def sync(connection: psycopg.Connection[Any]) -> None:
    """Send what waits in the connection's pipeline, and receive every answer.

    Raises:
        psycopg.Error: of the first statement that failed.
    """
    with connection.pipeline():  # a nested one, which synchronises when it ends
        pass
