"""URLs: what is ours in them, what libpq is given, and that no secret is ever told."""

from __future__ import annotations

import pytest
from fencepost.core import InvalidInput, LedgerFailed, open_ledger
from fencepost.core.ledgers.postgres import PostgresLedger
from fencepost.core.ledgers.postgres.address import parse_address
from psycopg.conninfo import conninfo_to_dict

SECRET = "s3cr%40t"
"""As it is written in a URL; in plain it is s3cr@t."""


@pytest.mark.parametrize(
    ("url", "location"),
    [
        ("postgresql://host/db", "postgresql://host/db"),
        (f"postgresql://me:{SECRET}@host/db", "postgresql://me@host/db"),
        (f"postgres://me:{SECRET}@one:1,two:2/db", "postgres://me@one:1,two:2/db"),
        (f"postgresql://me:{SECRET}@%2Frun%2Fpg/db?options=x", "postgresql://me@%2Frun%2Fpg/db?options=x"),
        (f"postgresql://host/db?password={SECRET}&user=me", "postgresql://host/db?user=me"),
        (f"postgresql://host/db?user=me&pass%77ord={SECRET}", "postgresql://host/db?user=me"),
        (f"postgresql:///db?sslpassword={SECRET}", "postgresql:///db"),
        ("postgresql://me:half#way?odd@host/db", "postgresql://me@host/db"),
        (
            f"postgresql://me:{SECRET}@host/db?fencepost_schema=jobs",
            "postgresql://me@host/db?fencepost_schema=jobs",
        ),
    ],
)
def test_the_location_is_the_url_without_its_secrets(url: str, location: str) -> None:
    with PostgresLedger(url) as ledger:
        assert ledger.location == location


def test_the_options_that_are_ours_are_not_given_to_libpq() -> None:
    address = parse_address(
        "postgresql://me@host/db?fencepost_schema=jobs&fencepost_listen=off&sslmode=require"
    )
    assert (address.schema, address.listen) == ("jobs", False)
    settings = conninfo_to_dict(address.conninfo)
    assert settings["sslmode"] == "require"
    assert not [name for name in settings if name.startswith("fencepost")]


def test_an_argument_wins_over_the_url() -> None:
    address = parse_address(
        "postgresql:///?fencepost_schema=jobs&fencepost_listen=off", schema="other", listen=True
    )
    assert (address.schema, address.listen) == ("other", True)


def test_without_options_the_schema_is_public_and_the_ledger_listens() -> None:
    address = parse_address("postgresql://host/db")
    assert (address.schema, address.listen) == ("public", True)


def test_a_peer_that_is_gone_is_noticed_unless_the_url_says_otherwise() -> None:
    patient = conninfo_to_dict(parse_address("postgresql://host/db?keepalives_idle=7").conninfo)
    assert patient["keepalives_idle"] == "7"
    assert patient["tcp_user_timeout"] == "30000"


@pytest.mark.parametrize("schema", ["", "Jobs", "1jobs", "a-b", 'a"b', "a.b", "j" * 49, "jobs\n", "größe"])
def test_a_schema_that_is_no_plain_name_is_refused(schema: str) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        PostgresLedger("postgresql:///db", schema=schema)


def test_listening_is_on_or_off() -> None:
    with pytest.raises(InvalidInput, match="fencepost_listen"):
        PostgresLedger("postgresql:///db?fencepost_listen=perhaps")


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}%zz@host/db",
        f"postgresql://me:{SECRET}@[::1/db",
        f"postgresql://me:{SECRET}@host/db?no_such_option=1",
        f"postgresql://me:{SECRET}@host/db?=",
    ],
)
def test_a_url_that_is_not_understood_is_refused_without_telling_the_secret(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        open_ledger(url)
    assert "s3cr" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_a_server_that_is_not_there_is_named_without_the_secret() -> None:
    with (
        open_ledger(f"postgresql://me:{SECRET}@127.0.0.1:1/db") as ledger,
        pytest.raises(LedgerFailed, match=r"me@127\.0\.0\.1:1/db.*refused") as failed,
    ):
        ledger.counts()
    assert "s3cr" not in str(failed.value)


def test_secrets_are_blotted_out_of_whatever_the_server_says() -> None:
    address = parse_address(f"postgresql://me:{SECRET}@host/db")
    assert address.hide_secrets("s3cr@t, s3cr%40t") == "***, ***"


def test_nothing_is_connected_to_before_it_is_needed() -> None:
    with PostgresLedger("postgresql://127.0.0.1:1/db") as ledger, pytest.raises(InvalidInput):
        ledger.enqueue([])
