"""Deliveries over a DB-API connection: key, digest, fence, answer and the service's own work commit together.

The statements are understood by SQLite (3.24 and later) and PostgreSQL. The first one of a delivery is a write on
the key's row: of several deliveries with one key, whatever their process, one goes on and the others wait for its end.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from .protocol import (
    RETRY_AFTER_S,
    Answer,
    Delivery,
    Refused,
    done,
    encode_answer,
    problem,
    receipt,
    refusal,
    replayed,
)
from .rules import Decision, Known, decide

ParamStyle: TypeAlias = Literal["qmark", "format"]
"""``qmark`` for sqlite3, ``format`` for psycopg and most others: how the driver marks a parameter."""


class Connection(Protocol):
    """What is needed of a DB-API connection."""

    def cursor(self) -> Any:
        """A cursor."""

    def commit(self) -> None:
        """End the transaction: all of it stays."""

    def rollback(self) -> None:
        """End the transaction: nothing of it stays."""


Work: TypeAlias = Callable[[Any, Delivery], Mapping[str, Any]]
"""The service's own work: gets the connection and the delivery, returns the receipt, and never commits."""

_CREATE: Final = (
    """
    CREATE TABLE IF NOT EXISTS fencepost_received (
        key TEXT PRIMARY KEY,
        fence BIGINT NOT NULL,
        job TEXT,
        digest TEXT,
        answer TEXT,
        seen_at_ms BIGINT NOT NULL,
        CHECK ((digest IS NULL) = (answer IS NULL))
    )
    """,
    "CREATE INDEX IF NOT EXISTS fencepost_received_seen ON fencepost_received (seen_at_ms)",
)
_SEE: Final = """
    INSERT INTO fencepost_received (key, fence, job, seen_at_ms) VALUES (?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET fence = excluded.fence WHERE excluded.fence > fencepost_received.fence
"""
_READ: Final = "SELECT fence, digest, answer FROM fencepost_received WHERE key = ?"
_KEEP: Final = "UPDATE fencepost_received SET digest = ?, answer = ? WHERE key = ?"
_FORGET: Final = "DELETE FROM fencepost_received WHERE seen_at_ms < ?"

_BEGIN_WORK: Final = "SAVEPOINT fencepost_work"
_END_WORK: Final = "RELEASE SAVEPOINT fencepost_work"
_UNDO_WORK: Final = "ROLLBACK TO SAVEPOINT fencepost_work"


def create_table(connection: Connection) -> None:
    """Make the table of keys, if it is not there, and commit. A service with migrations copies the statements."""
    for statement in _CREATE:
        _execute(connection, "qmark", statement)
    connection.commit()


def receive(
    connection: Connection,
    delivery: Delivery,
    work: Work,
    *,
    paramstyle: ParamStyle = "qmark",
    now_ms: int | None = None,
) -> Answer:
    """Do the work of a delivery if it is new, and answer it; ends with a commit or a rollback.

    The fence stays known even where the work fails, so that an older attempt which arrives late is refused.

    Raises:
        ValueError: the connection commits every statement by itself.
        Exception: what ``work`` or the database raised; nothing of the work is stored.
    """
    _refuse_autocommit(connection)
    try:
        decision, answer = _attempt(connection, paramstyle, delivery, work, now_ms)
        if answer is None:
            connection.rollback()
            return refusal(decision)
        connection.commit()
    except Refused as error:
        return problem(error.status, "refused", str(error))
    except BaseException as error:
        _roll_back(connection, error)
        if (busy := _busy(error)) is not None:
            return busy
        raise
    return done(answer) if decision is Decision.DO else replayed(answer)


def look_up(connection: Connection, key: str, *, paramstyle: ParamStyle = "qmark") -> Answer:
    """The receipt of a key, for a sender that does not know what became of its request."""
    known = read(connection, key, paramstyle=paramstyle)
    if known is None or known.answer is None:
        return problem(404, "unknown-key", "Nothing was done for this key.")
    return receipt(known.answer)


def read(connection: Connection, key: str, *, paramstyle: ParamStyle = "qmark") -> Known | None:
    """What is stored of a key. Ends the transaction, so that a delivery starts with a fresh one."""
    known = _read(connection, paramstyle, key)
    connection.rollback()
    return known


def note_fence(connection: Connection, key: str, fence: int, *, paramstyle: ParamStyle = "qmark") -> None:
    """Remember that a sender with this fence was here and told to wait, and commit."""
    _execute(connection, paramstyle, _SEE, key, fence, None, wall_ms())
    connection.commit()


def forget(connection: Connection, *, before_ms: int, paramstyle: ParamStyle = "qmark") -> None:
    """Forget keys first seen before that instant, and commit. A repetition of one of them would do the work again."""
    _execute(connection, paramstyle, _FORGET, before_ms)
    connection.commit()


def wall_ms() -> int:
    """The wall clock, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _attempt(
    connection: Connection, paramstyle: ParamStyle, delivery: Delivery, work: Work, now_ms: int | None
) -> tuple[Decision, str | None]:
    """The decision, and the answer where there is one. A write comes first: it takes the lock on the key."""
    seen_at_ms = wall_ms() if now_ms is None else now_ms
    _execute(connection, paramstyle, _SEE, delivery.key, delivery.fence, delivery.job, seen_at_ms)
    known = _read(connection, paramstyle, delivery.key)
    decision = decide(known, fence=delivery.fence, digest=delivery.digest)
    if decision is Decision.REPLAY:
        assert known is not None, "what is replayed was stored"
        return decision, known.answer
    if decision is not Decision.DO:
        return decision, None
    answer = _do(connection, paramstyle, delivery, work)
    _execute(connection, paramstyle, _KEEP, delivery.digest, answer, delivery.key)
    return decision, answer


def _do(connection: Connection, paramstyle: ParamStyle, delivery: Delivery, work: Work) -> str:
    _execute(connection, paramstyle, _BEGIN_WORK)
    try:
        answer = encode_answer(work(connection, delivery))
    except Exception:  # undone and passed on
        # Only the work is undone: that this fence was seen is committed.
        _execute(connection, paramstyle, _UNDO_WORK)
        connection.commit()
        raise
    try:
        _execute(connection, paramstyle, _END_WORK)
    except Exception as error:  # each driver has its own class for a savepoint that is gone
        raise RuntimeError(
            "the work ended the transaction that keeps its key, or left it in error: it must neither commit nor "
            "roll back, nor use `with connection:`, or a crash there would let the work be done twice"
        ) from error
    return answer


def _read(connection: Connection, paramstyle: ParamStyle, key: str) -> Known | None:
    cursor = _execute(connection, paramstyle, _READ, key)
    row = cursor.fetchone()
    cursor.close()
    return None if row is None else Known(fence=row[0], digest=row[1], answer=row[2])


def _execute(connection: Connection, paramstyle: ParamStyle, statement: str, *values: object) -> Any:
    cursor = connection.cursor()
    cursor.execute(statement if paramstyle == "qmark" else statement.replace("?", "%s"), values)
    return cursor


def _refuse_autocommit(connection: Connection) -> None:
    by_itself = getattr(connection, "autocommit", False) is True
    if isinstance(connection, sqlite3.Connection) and getattr(connection, "autocommit", -1) == -1:
        by_itself = connection.isolation_level is None
    if by_itself:
        raise ValueError(
            "the connection commits every statement by itself, so the key could be stored without the work: open "
            "it without autocommit (sqlite3: not isolation_level=None)"
        )


def _roll_back(connection: Connection, error: BaseException) -> None:
    try:
        connection.rollback()
    except Exception as second:  # noqa: BLE001 - a connection that is lost has rolled back; the first error counts
        error.add_note(f"and the rollback failed: {type(second).__name__}: {second}")


def _busy(error: BaseException) -> Answer | None:
    """The answer where a lock was not had in time; by the drivers' own codes, so that none needs to be imported."""
    if getattr(error, "sqlstate", None) in ("55P03", "40001", "40P01"):
        return problem(409, "in-progress", "This key may be worked on.", retry_after_s=RETRY_AFTER_S)
    if str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY"):
        return problem(503, "busy", "The database is busy.", retry_after_s=RETRY_AFTER_S)
    return None
