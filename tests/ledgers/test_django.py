"""Jobs enqueued in Django's transactions, with a real Django in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fencepost.core import open_ledger
from fencepost.core.ledgers.postgres.address import parse_address
from fencepost.core.testing import Store
from psycopg.conninfo import conninfo_to_dict

from tests.programs import python

SITE = """
import json, sys
import django
from django.conf import settings
from django.db import connection, transaction

store, options = sys.argv[1], json.loads(sys.argv[2])
settings.configure(DATABASES={"default": options}, USE_TZ=True)
django.setup()

from fencepost.core import NewJob, open_ledger

with open_ledger(store) as ledger:
    ledger.counts()  # makes the ledger
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE orders (number integer PRIMARY KEY)")

    def order(number):
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO orders VALUES (%s)", [number])
        return ledger.enqueue([NewJob(f"order-{number}", "text")], connection=connection.connection)

    with transaction.atomic():
        assert order(1)[0].created
        assert ledger.get_job("order-1") is None
    try:
        with transaction.atomic():
            order(2)
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    with transaction.atomic():
        order(3)
        try:
            with transaction.atomic():
                order(4)
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
    with connection.cursor() as cursor:
        cursor.execute("SELECT number FROM orders ORDER BY number")
        print(json.dumps([number for number, in cursor.fetchall()]))
        cursor.execute("DROP TABLE orders")
"""


@pytest.mark.parametrize("binding", [{}, {"server_side_binding": True}], ids=["client-side", "server-side"])
def test_a_job_is_enqueued_in_the_transaction_of_django(
    postgres_stores: Callable[[Path], Store], binding: dict[str, Any]
) -> None:
    store = postgres_stores(Path()).name
    assert store is not None
    known = conninfo_to_dict(parse_address(store).conninfo)
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    database = {name: known.get(key, "") for name, key in names.items()}
    expect_orders(store, {"ENGINE": "django.db.backends.postgresql", "OPTIONS": binding, **database})


def test_a_job_is_enqueued_in_the_transaction_of_django_on_sqlite(tmp_path: Path) -> None:
    store = str(tmp_path / "site.db")
    expect_orders(store, {"ENGINE": "django.db.backends.sqlite3", "NAME": store})


def expect_orders(store: str, database: dict[str, Any]) -> None:
    """Orders and jobs came together, or not at all."""
    ended = python(SITE, store, json.dumps(database))
    assert ended.returncode == 0, ended.stderr.decode()
    assert json.loads(ended.stdout) == [1, 3]
    with open_ledger(store) as ledger:
        assert [job.id for job in ledger.jobs().jobs] == ["order-1", "order-3"]
