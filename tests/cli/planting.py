"""Damage done to stores behind the program's back, for the doctor to find."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from fencepost.core.ledgers.postgres.address import parse_address


@dataclass(frozen=True)
class Damage:
    """What can be done to a store of one kind."""

    lose_input: Callable[[str, str], None]
    """Store and id."""
    lose_receipt: Callable[[str, str], None]
    change_text: Callable[[str, str], None]
    garble_receipt: Callable[[str, str], None]
    miscount: Callable[[str, str], None]
    """Let a receipt of the default effect say that the text has 4 words."""
    forget_job: Callable[[str, str], None]
    """Leave the input and the receipt, and no job."""
    always: frozenset[str] = frozenset()
    """What is wrong with every store of this kind in the tests."""


def _unlink(room: str) -> Callable[[str, str], None]:
    return lambda store, id: (Path(store) / room / f"{id}.json").unlink()


def _change_file(store: str, id: str) -> None:
    (Path(store) / "inputs" / f"{id}.json").write_text(json.dumps({"id": id, "text": "changed"}))


def _garble_file(store: str, id: str) -> None:
    (Path(store) / "effects" / f"{id}.json").write_text("{")


def _miscount_file(store: str, id: str) -> None:
    file = Path(store) / "effects" / f"{id}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"words": 4}))


def _forget_row(store: str, id: str) -> None:
    file = Path(store) / "jobs.json"
    rows = [row for row in json.loads(file.read_text()) if row["ID"] != id]
    file.write_text(json.dumps(rows, indent=2) + "\n")


def _sql(statement: str) -> Callable[[str, str], None]:
    def damage(store: str, id: str) -> None:
        with closing(sqlite3.connect(store)) as connection, connection:
            triggers = connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall()
            for name, _ in triggers:
                connection.execute(f"DROP TRIGGER {name}")
            assert connection.execute(statement, {"id": id}).rowcount == 1
            for _, sql in triggers:
                connection.execute(sql)

    return damage


def _postgres(statement: str) -> Callable[[str, str], None]:
    def damage(store: str, id: str) -> None:
        address = parse_address(store)
        with psycopg.connect(address.conninfo) as connection:
            connection.execute(f"SET LOCAL search_path = {address.schema}".encode())
            # The triggers that keep inputs and receipts are passed by.
            connection.execute("SET LOCAL session_replication_role = replica")
            assert connection.execute(statement.encode(), {"id": id}).rowcount == 1

    return damage


DAMAGE = {
    "directory": Damage(
        _unlink("inputs"), _unlink("effects"), _change_file, _garble_file, _miscount_file, _forget_row
    ),
    "sqlite": Damage(
        _sql("DELETE FROM fencepost_inputs WHERE id = :id"),
        _sql("DELETE FROM fencepost_effects WHERE id = :id"),
        _sql("UPDATE fencepost_inputs SET text = 'changed' WHERE id = :id"),
        _sql("UPDATE fencepost_effects SET receipt = '{' WHERE id = :id"),
        _sql("UPDATE fencepost_effects SET receipt = json_set(receipt, '$.words', 4) WHERE id = :id"),
        _sql("DELETE FROM fencepost_jobs WHERE id = :id"),
    ),
    "postgres": Damage(
        _postgres("DELETE FROM fencepost_inputs WHERE id = %(id)s"),
        _postgres("DELETE FROM fencepost_effects WHERE id = %(id)s"),
        _postgres("UPDATE fencepost_inputs SET text = 'changed' WHERE id = %(id)s"),
        _postgres("UPDATE fencepost_effects SET receipt = '{' WHERE id = %(id)s"),
        _postgres(
            "UPDATE fencepost_effects SET receipt = convert_to(jsonb_set("
            "convert_from(receipt, 'UTF8')::jsonb, '{words}', '4')::text, 'UTF8') WHERE id = %(id)s"
        ),
        _postgres("DELETE FROM fencepost_jobs WHERE id = %(id)s"),
        # The tests' server is quick because it is not durable, which the doctor is right to say.
        frozenset({"not-durable"}),
    ),
}
"""Another kind of ledger is another entry here."""
