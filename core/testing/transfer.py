"""Moving a whole ledger: sealed at the source, exported in pages, imported row by row as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from ..errors import (
    IdentityConflict,
    InvalidInput,
    LedgerBusy,
    LedgerSealed,
    Unsupported,
)
from ..ledgers.protocol import Ledger
from ..model.inputs import Input
from ..model.job import Job, Stamps
from ..model.receipts import Receipt
from ..model.records import Row, Schedule
from .base import (
    LEASE_MS,
    NO_CURSORS,
    Contract,
    NewStore,
    claim,
    claim_one,
    enqueue,
    ids,
    job_of,
    new,
    receipt,
)
from .model import ModelLedger
from .model_store import as_kept, same_row

TARGET = "sqlite:/backup/jobs.db"
SOURCE = "sqlite:/old/jobs.db"


def populate(ledger: Ledger) -> None:
    """Jobs of every state and kind, a purged id, and receipts; no lease is live after 2,000."""
    stamps = Stamps(0.5, 7, 2, 90)
    enqueue(ledger, "done", "dead", "lapsed", "held", "gone", now_ms=10)
    ledger.enqueue(
        [
            new(
                "rich",
                "a\0é𝔘",
                queue="mail",
                effect="send",
                priority=-7,
                run_at_ms=9_000,
                expires_at_ms=9_500,
                stamps=stamps,
            )
        ],
        now_ms=20,
    )
    enqueue(ledger, "plain", now_ms=30)
    claim(ledger, 100, limit=5, lease_ms=900)
    ledger.publish(receipt("done"))
    ledger.complete("done", 1, now_ms=200)
    ledger.publish(receipt("dead", words=0))
    ledger.fail("dead", 1, error="no", now_ms=210)
    ledger.begin("held", 1, now_ms=220)
    ledger.hold("held", 1, error="look", now_ms=230)
    ledger.cancel("gone", now_ms=240)
    ledger.purge("gone", now_ms=250)


def export_all(ledger: Ledger, limit: int = 1_000) -> list[Row]:
    """All rows, page by page."""
    rows, after = [], None
    while True:
        page = ledger.export_rows(after=after, limit=limit)
        assert len(page.rows) <= limit
        rows += page.rows
        after = page.next
        if after is None:
            return rows


def as_imported(rows: Iterable[Row], ledger: Ledger) -> list[Row]:
    """The rows as the ledger keeps them."""
    return [
        row if row.job is None else replace(row, job=as_kept(row.job, ledger.capabilities)) for row in rows
    ]


def check_same(found: list[Row], want: list[Row]) -> None:
    """The same rows in the same order."""
    assert [row.id for row in found] == [row.id for row in want]
    for one, other in zip(found, want, strict=True):
        assert same_row(one, other), f"{one} is not {other}"


VERBS: dict[str, Callable[[Ledger], object]] = {
    "enqueue": lambda ledger: enqueue(ledger, "new"),
    "enqueue of a known id": lambda ledger: enqueue(ledger, "plain"),
    "claim": lambda ledger: claim(ledger, 9_000),
    "begin": lambda ledger: ledger.begin("lapsed", 1, now_ms=500),
    "heartbeat": lambda ledger: ledger.heartbeat("lapsed", 1, extend_ms=1, now_ms=500),
    "complete": lambda ledger: ledger.complete("lapsed", 1, now_ms=500),
    "retry": lambda ledger: ledger.retry("lapsed", 1, run_at_ms=None, error="no", max_attempts=3, now_ms=500),
    "fail": lambda ledger: ledger.fail("lapsed", 1, error="no", now_ms=500),
    "release": lambda ledger: ledger.release("lapsed", 1, now_ms=500),
    "hold": lambda ledger: ledger.hold("lapsed", 1, error="no", now_ms=500),
    "reschedule": lambda ledger: ledger.reschedule("plain", priority=1, now_ms=2_001),
    "cancel": lambda ledger: ledger.cancel("plain", now_ms=2_001),
    "redrive": lambda ledger: ledger.redrive("dead", now_ms=2_001),
    "resolve": lambda ledger: ledger.resolve("held", decision="retry", now_ms=2_001),
    "purge": lambda ledger: ledger.purge("dead", now_ms=2_001),
    "sweep": lambda ledger: ledger.sweep_expired(now_ms=99_000),
    "publish": lambda ledger: ledger.publish(receipt("plain")),
}
"""What changes a ledger, each of which would be granted here if it were not sealed."""

HOLDINGS: dict[str, Callable[[Ledger], object]] = {
    "job": lambda ledger: enqueue(ledger, "a"),
    "receipt": lambda ledger: ledger.publish(receipt("a")),
    "input": lambda ledger: ledger.import_rows([Row("a", None, None, Input("a", "text of a"), None)]),
    "purged id": lambda ledger: ledger.import_rows([Row("a", None, 3, Input("a", "text of a"), None)]),
}
"""What may be all that a ledger holds."""


class TransferContract(Contract):
    """Export, import, seal, and the copy that comes."""

    # -- export --

    def test_an_empty_ledger_exports_nothing(self, ledger: Ledger) -> None:
        assert export_all(ledger) == []

    def test_everything_is_exported_in_order_of_enqueue_ids_without_a_job_last(self, ledger: Ledger) -> None:
        populate(ledger)
        rows = export_all(ledger)
        assert [row.id for row in rows] == ["done", "dead", "lapsed", "held", "rich", "plain", "gone"]
        for row in rows[:-1]:
            assert row.job == job_of(ledger, row.id)
            assert row.purged_version is None
        assert (rows[-1].job, rows[-1].purged_version) == (None, 2)
        assert {row.id: row.input for row in rows} == ledger.read_inputs([row.id for row in rows])
        assert [row.id for row in rows if row.receipt is not None] == ["done", "dead"]

    @pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
    def test_an_export_in_pages_is_the_same(self, ledger: Ledger, limit: int) -> None:
        populate(ledger)
        check_same(export_all(ledger, limit), export_all(ledger))

    @pytest.mark.parametrize("cursor", NO_CURSORS)
    def test_a_cursor_that_no_export_gave_is_refused(self, ledger: Ledger, cursor: str) -> None:
        enqueue(ledger, "a")
        with pytest.raises(InvalidInput):
            ledger.export_rows(after=cursor)

    # -- import --

    def test_what_is_imported_is_there_as_it_was(self, ledger: Ledger, new_store: NewStore) -> None:
        source = ModelLedger()
        populate(source)
        rows = export_all(source)
        assert ledger.import_rows(rows) == len(rows)
        want = as_imported(rows, ledger)
        check_same(export_all(ledger), want)
        assert ids(ledger.jobs().jobs) == [row.id for row in want if row.job is not None]
        assert ledger.counts() == source.counts()

    def test_one_ledger_is_moved_to_another_of_its_kind(self, ledger: Ledger, new_store: NewStore) -> None:
        populate(ledger)
        with new_store().open() as target:
            rows = export_all(ledger)
            assert target.import_rows(rows) == len(rows)
            check_same(export_all(target), rows)
            assert target.next_due_ms() == ledger.next_due_ms()

    def test_imported_jobs_go_on_where_they_stood(self, ledger: Ledger) -> None:
        source = ModelLedger()
        populate(source)
        ledger.import_rows(export_all(source))
        assert claim_one(ledger, 1_000).id == "lapsed"
        assert job_of(ledger, "lapsed").version == 3
        assert ledger.redrive("dead", now_ms=1_000)
        assert ledger.resolve("held", decision="retry", now_ms=1_000)
        assert ids(claim(ledger, 9_000 - 1, limit=9)) == ["dead", "lapsed", "held", "plain"]
        assert claim_one(ledger, 9_000).id == "rich"

    def test_an_imported_purged_id_stays_bound_and_its_fences_go_on(self, ledger: Ledger) -> None:
        ledger.import_rows([Row("gone", None, 7, Input("gone", "text of gone"), None)])
        assert ledger.get_job("gone") is None
        with pytest.raises(IdentityConflict):
            ledger.enqueue([new("gone", "another text")])
        enqueue(ledger, "gone")
        assert job_of(ledger, "gone").version == 8

    def test_importing_again_changes_nothing(self, ledger: Ledger) -> None:
        source = ModelLedger()
        populate(source)
        rows = export_all(source)
        assert ledger.import_rows(rows[:3]) == 3
        assert ledger.import_rows(rows) == len(rows) - 3
        assert ledger.import_rows(rows) == 0
        check_same(export_all(ledger), as_imported(rows, ledger))

    def test_importing_nothing_is_nothing(self, ledger: Ledger) -> None:
        assert ledger.import_rows([]) == 0
        assert ledger.import_rows([]) == 0

    @pytest.mark.parametrize("part", ["version", "text", "receipt"])
    def test_a_row_that_is_there_and_differs_is_a_conflict_and_nothing_is_imported(
        self, ledger: Ledger, part: str
    ) -> None:
        row = Row("a", Job("a", "completed", 3, attempts=2), None, Input("a", "text of a"), receipt("a"))
        ledger.import_rows([row])
        other = {
            "version": replace(row, job=Job("a", "completed", 4, attempts=2)),
            "text": replace(row, input=Input("a", "another text")),
            "receipt": replace(row, receipt=Receipt("a", receipt("a").input_sha256, {"words": 4})),
        }[part]
        fresh = Row("b", Job("b"), None, Input("b", "text of b"), None)
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.import_rows([fresh, other])
        check_same(export_all(ledger), as_imported([row], ledger))

    def test_jobs_enqueued_after_an_import_come_after_it(self, ledger: Ledger) -> None:
        source = ModelLedger()
        populate(source)
        ledger.import_rows(export_all(source))
        enqueue(ledger, "later", now_ms=5_000)
        assert ids(ledger.jobs().jobs)[-1] == "later"

    # -- seal --

    def sealed(self, ledger: Ledger) -> None:
        """A ledger with jobs, moved away."""
        populate(ledger)
        ledger.seal(TARGET, actor="me", now_ms=2_000)

    def test_a_seal_names_its_destination(self, make_ledger: Callable[[], Ledger]) -> None:
        ledger = make_ledger()
        assert ledger.sealed_for() is None
        self.sealed(ledger)
        assert ledger.sealed_for() == TARGET
        assert make_ledger().sealed_for() == TARGET

    @pytest.mark.parametrize("verb", VERBS)
    def test_a_sealed_ledger_refuses_every_change_by_the_name_of_its_destination(
        self, make_ledger: Callable[[], Ledger], verb: str
    ) -> None:
        ledger, other = make_ledger(), make_ledger()
        self.sealed(ledger)
        rows = export_all(ledger)
        for each in (ledger, other):
            with pytest.raises(LedgerSealed, match=TARGET):
                VERBS[verb](each)
        check_same(export_all(ledger), rows)

    def test_a_sealed_ledger_can_be_looked_at(self, ledger: Ledger) -> None:
        self.sealed(ledger)
        assert job_of(ledger, "plain").state == "queued"
        assert ledger.counts()["queued"] == 2
        assert len(ledger.jobs().jobs) == 6
        assert ledger.receipts(["done"])["done"].same_as(receipt("done"))
        assert ledger.read_inputs(["plain"])["plain"].text == "text of plain"
        assert ledger.audit()[-1].action == "seal"

    def test_a_seal_is_recorded(self, ledger: Ledger) -> None:
        enqueue(ledger, "a")
        ledger.seal(TARGET, actor="me", now_ms=2_000)
        ledger.seal(TARGET, actor="you", now_ms=2_001)
        entries = [(entry.at_ms, entry.action, entry.id, entry.actor) for entry in ledger.audit()]
        assert entries == [(2_000, "seal", TARGET, "me")]

    def test_sealing_again_for_the_same_destination_is_harmless(self, ledger: Ledger) -> None:
        self.sealed(ledger)
        ledger.seal(TARGET, now_ms=2_001)
        assert ledger.sealed_for() == TARGET

    def test_sealing_for_another_destination_is_refused(self, ledger: Ledger) -> None:
        self.sealed(ledger)
        with pytest.raises(LedgerSealed, match=TARGET):
            ledger.seal("elsewhere", now_ms=2_001)
        assert ledger.sealed_for() == TARGET

    @pytest.mark.parametrize(("offset_ms", "live"), [(-1, True), (0, False), (+1, False)])
    def test_a_ledger_is_not_sealed_while_a_lease_is_live(
        self, ledger: Ledger, offset_ms: int, live: bool
    ) -> None:
        enqueue(ledger, "a")
        version = claim_one(ledger, 0).version
        if not live:
            ledger.seal(TARGET, now_ms=LEASE_MS + offset_ms)
            assert ledger.sealed_for() == TARGET
            return
        with pytest.raises(LedgerBusy):
            ledger.seal(TARGET, now_ms=LEASE_MS + offset_ms)
        assert ledger.sealed_for() is None
        assert ledger.complete("a", version, now_ms=LEASE_MS + offset_ms)
        ledger.seal(TARGET, now_ms=LEASE_MS + offset_ms)

    # -- a copy that comes --

    def arriving(self, ledger: Ledger) -> None:
        """A ledger to which a copy has come nearly whole, and has not ended."""
        assert ledger.begin_copy(SOURCE, actor="me", now_ms=1_900)
        source = ModelLedger()
        populate(source)
        ledger.import_rows(export_all(source))

    def test_an_unfinished_copy_names_its_source(self, make_ledger: Callable[[], Ledger]) -> None:
        ledger = make_ledger()
        assert ledger.copying_from() is None
        self.arriving(ledger)
        assert ledger.copying_from() == SOURCE
        assert make_ledger().copying_from() == SOURCE
        assert ledger.sealed_for() is None

    @pytest.mark.parametrize("verb", [*VERBS, "seal"])
    def test_until_a_copy_has_ended_every_change_is_refused_by_the_name_of_its_source(
        self, make_ledger: Callable[[], Ledger], verb: str
    ) -> None:
        change = (VERBS | {"seal": lambda ledger: ledger.seal(TARGET, now_ms=2_000)})[verb]
        ledger, other = make_ledger(), make_ledger()
        self.arriving(ledger)
        rows = export_all(ledger)
        for each in (ledger, other):
            with pytest.raises(LedgerSealed, match=SOURCE):
                change(each)
        check_same(export_all(ledger), rows)
        assert ledger.end_copy(SOURCE, now_ms=2_000)
        for each in (ledger, other):
            change(each)

    def test_a_copy_that_has_not_ended_can_be_looked_at(self, ledger: Ledger) -> None:
        self.arriving(ledger)
        assert job_of(ledger, "plain").state == "queued"
        assert ledger.counts()["queued"] == 2

    def test_beginning_again_is_harmless_and_another_copy_must_wait(self, ledger: Ledger) -> None:
        self.arriving(ledger)
        assert not ledger.begin_copy(SOURCE, actor="you", now_ms=1_950)
        with pytest.raises(LedgerSealed, match=SOURCE):
            ledger.begin_copy("elsewhere", now_ms=1_960)
        assert ledger.end_copy(SOURCE, actor="me", now_ms=2_000)
        entries = [(entry.at_ms, entry.action, entry.id, entry.actor) for entry in ledger.audit()]
        assert entries == [(1_900, "copy-begin", SOURCE, "me"), (2_000, "copy-end", SOURCE, "me")]

    @pytest.mark.parametrize("what", HOLDINGS)
    def test_a_copy_begins_in_an_empty_ledger_only(self, ledger: Ledger, what: str) -> None:
        HOLDINGS[what](ledger)
        with pytest.raises(IdentityConflict, match="'a'"):
            ledger.begin_copy(SOURCE, now_ms=1_900)
        assert ledger.copying_from() is None
        assert ledger.audit() == []
        enqueue(ledger, "b")

    def test_a_copy_does_not_begin_in_a_sealed_ledger(self, ledger: Ledger) -> None:
        ledger.seal(TARGET, now_ms=1)
        with pytest.raises(LedgerSealed, match=TARGET):
            ledger.begin_copy(SOURCE, now_ms=2)

    def test_without_a_copy_there_is_none_to_end(self, ledger: Ledger) -> None:
        assert not ledger.end_copy(SOURCE, now_ms=1)
        ledger.begin_copy(SOURCE, now_ms=2)
        assert ledger.end_copy(SOURCE, now_ms=3)
        assert not ledger.end_copy(SOURCE, now_ms=4)
        assert len(ledger.audit()) == 2

    def test_only_the_copy_that_is_under_way_can_be_ended(self, ledger: Ledger) -> None:
        self.arriving(ledger)
        assert not ledger.end_copy("elsewhere", now_ms=2_000)
        assert ledger.copying_from() == SOURCE
        assert len(ledger.audit()) == 1

    def test_a_row_of_a_copy_is_refused_where_that_copy_is_not_under_way(self, ledger: Ledger) -> None:
        row = Row("a", None, None, Input("a", "text of a"), None)
        with pytest.raises(IdentityConflict, match="not under way"):
            ledger.import_rows([row], copy_of=SOURCE)
        ledger.begin_copy(SOURCE, now_ms=1)
        with pytest.raises(IdentityConflict, match="elsewhere"):
            ledger.import_rows([row], copy_of="elsewhere")
        assert ledger.import_rows([row], copy_of=SOURCE) == 1
        ledger.end_copy(SOURCE, now_ms=2)
        with pytest.raises(IdentityConflict, match="not under way"):
            ledger.import_rows([row], copy_of=SOURCE)

    def test_pauses_and_schedules_come_with_the_end_of_a_copy(self, ledger: Ledger) -> None:
        paused, schedules = ["mail"], [Schedule("nightly", "@every 1h", "a\0é", next_ms=7_201_000)]
        ledger.begin_copy(SOURCE, now_ms=2)
        if not ledger.capabilities.has_schedules:
            with pytest.raises(Unsupported):
                ledger.end_copy(SOURCE, paused=paused, now_ms=3)
            with pytest.raises(Unsupported):
                ledger.end_copy(SOURCE, schedules=schedules, now_ms=3)
            assert ledger.copying_from() == SOURCE
            return
        assert ledger.end_copy(SOURCE, paused=paused, schedules=schedules, actor="me", now_ms=3)
        assert ledger.paused() == paused
        assert [(one.name, one.text, one.next_ms) for one in ledger.schedules()] == [
            ("nightly", "a\0é", 7_201_000)
        ]
        entries = [(entry.action, entry.id, entry.actor) for entry in ledger.audit()]
        assert entries[1:] == [("pause", "mail", "me"), ("copy-end", SOURCE, "me")]
        with pytest.raises(IdentityConflict, match="'nightly'"):
            ledger.begin_copy("elsewhere", now_ms=4)

    def test_no_pause_and_no_schedule_is_made_while_a_copy_comes(self, ledger: Ledger) -> None:
        if not ledger.capabilities.has_schedules:
            return
        ledger.begin_copy(SOURCE, now_ms=2)
        with pytest.raises(LedgerSealed, match=SOURCE):
            ledger.pause("mail", now_ms=3)
        with pytest.raises(LedgerSealed, match=SOURCE):
            ledger.register_schedule(Schedule("nightly", "@every 1h", "text"), now_ms=3)
        with pytest.raises(LedgerSealed, match=SOURCE):
            ledger.tick(now_ms=9_000_000)
