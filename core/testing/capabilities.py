"""Tests of what a ledger can do: a verb that it does not have is a clear error that says which ledgers do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ..errors import IdentityConflict, InvalidInput, Unsupported
from ..ledgers.protocol import Ledger
from ..model.records import Schedule
from .base import (
    Contract,
    Store,
    ids,
    job_of,
    new,
)

ASKING: tuple[Callable[[Ledger], object], ...] = (
    lambda ledger: ledger.register_schedule(Schedule("beat", "@every 1m", "text"), now_ms=0),
    lambda ledger: ledger.unregister_schedule("beat"),
    lambda ledger: ledger.apply_schedules([], now_ms=0),
    lambda ledger: ledger.pause_schedule("beat", now_ms=0),
    lambda ledger: ledger.resume_schedule("beat", now_ms=0),
    lambda ledger: ledger.run_schedule("beat", now_ms=0),
    lambda ledger: ledger.pause("mail", now_ms=0),
    lambda ledger: ledger.resume("mail", now_ms=0),
)
"""The verbs that want a schedule or a pause."""
LOOKING: tuple[Callable[[Ledger], object], ...] = (
    lambda ledger: ledger.schedules(),
    lambda ledger: ledger.tick(now_ms=60_000),
    lambda ledger: ledger.soonest(),
    lambda ledger: ledger.paused(),
)
"""The verbs that look whether there are any, as a worker does of any ledger."""


class CapabilityContract(Contract):
    """A verb that a kind of ledger does not have is a clear error that names those that do."""

    def test_a_ledger_has_schedules_and_pauses_or_says_so(self, ledger: Ledger) -> None:
        for verb in ASKING:
            if ledger.capabilities.has_schedules:
                verb(ledger)
            else:
                with pytest.raises(Unsupported, match=r"(?i)sqlite|postgres|\.db"):
                    verb(ledger)

    def test_looking_for_schedules_and_pauses_finds_none_or_says_so(self, ledger: Ledger) -> None:
        for verb in LOOKING:
            try:
                assert not verb(ledger)
            except Unsupported:
                assert not ledger.capabilities.has_schedules

    def test_what_is_no_connection_is_never_joined(self, ledger: Ledger) -> None:
        error = InvalidInput if ledger.capabilities.can_join_transaction else Unsupported
        with pytest.raises(error):
            ledger.enqueue([new("a")], connection=object())
        assert ledger.get_job("a") is None


class JoinContract(Contract):
    """Enqueue in the caller's own transaction; for ledgers that can join it."""

    @pytest.fixture
    def joining(self, ledger: Ledger, store: Store) -> Ledger:
        """A ledger that can join, with its tables made."""
        if not ledger.capabilities.can_join_transaction:
            pytest.skip("can_join_transaction: this ledger joins no transaction")
        assert store.connect is not None, "this ledger joins transactions: its Store must give a connection"
        ledger.counts()
        return ledger

    def test_the_jobs_exist_once_the_caller_commits(self, joining: Ledger, store: Store) -> None:
        assert store.connect is not None
        connection = store.connect()
        try:
            answers = joining.enqueue([new("a"), new("b")], connection=connection, now_ms=2)
            assert [answer.created for answer in answers] == [True, True]
            assert joining.get_job("a") is None, "nothing is to be seen before the commit"
            connection.commit()
        finally:
            connection.close()
        assert ids(joining.jobs().jobs) == ["a", "b"]
        assert job_of(joining) == job_of(joining, "b")._replace(id="a")

    def test_nothing_exists_where_the_caller_rolls_back(self, joining: Ledger, store: Store) -> None:
        assert store.connect is not None
        connection = store.connect()
        try:
            joining.enqueue([new("a")], connection=connection, now_ms=1)
            connection.rollback()
        finally:
            connection.close()
        assert joining.get_job("a") is None
        assert joining.read_inputs(["a"]) == {}
        assert joining.enqueue([new("a", "quite another text")], now_ms=2)[0].created

    def test_a_refused_request_leaves_the_callers_transaction_usable(
        self, joining: Ledger, store: Store
    ) -> None:
        assert store.connect is not None
        joining.enqueue([new("bound")], now_ms=0)
        connection = store.connect()
        try:
            joining.enqueue([new("a")], connection=connection, now_ms=1)
            with pytest.raises(InvalidInput):
                joining.enqueue([new("b"), new("bad\n")], connection=connection, now_ms=1)
            with pytest.raises(IdentityConflict):
                joining.enqueue([new("c"), new("bound", "another text")], connection=connection, now_ms=1)
            joining.enqueue([new("d")], connection=connection, now_ms=1)
            connection.commit()
        finally:
            connection.close()
        assert ids(joining.jobs().jobs) == ["bound", "a", "d"]
