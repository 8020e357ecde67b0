"""What people see on a terminal of 80 and of 200 columns, kept in docs/explanation/screens.

``FENCEPOST_KEEP_SCREENS=1`` writes the files anew: look at them before you commit them.
"""

from __future__ import annotations

import io
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fencepost.core import Job, Stamps
from fencepost.core.cli.top.snapshot import Line, Snapshot
from fencepost.core.cli.top.view import draw
from fencepost.core.cli.ui.tables import console
from fencepost.core.model.queue_counts import QueueCounts

from tests.cli.inprocess import Program
from tests.cli.terminal import Terminal

SCREENS = Path(__file__).parents[2] / "docs" / "explanation" / "screens"
NOW_MS = 1_796_000_000_000
SHOWN_AS = "/srv/shop/queues/jobs.db"


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    """A shop's ledger on a bad morning; its path is as long as the one that stands for it in the screens."""
    folder = tempfile.mkdtemp(dir="/tmp", prefix="fp-")
    program = Program(os.path.join(folder, "jobs.db"))
    assert len(program.store) == len(SHOWN_AS)
    try:
        _bad_morning(program)
        yield program.store
    finally:
        shutil.rmtree(folder)


def _bad_morning(program: Program) -> None:
    orders = [f"order-{number}" for number in range(1_001, 1_007)]
    program.enqueue(*orders, queue="bills", effect="charge", now_ms=NOW_MS - 3_600_000)
    for minutes in (50, 41, 33, 20):
        program.complete(now_ms=NOW_MS - minutes * 60_000)
    program.hold("order-1005", error="outcome unknown: ReadTimeout: no answer", now_ms=NOW_MS - 900_000)
    program.enqueue("welcome-ann", "welcome-bob", queue="mail", effect="send", now_ms=NOW_MS - 1_200_000)
    program.bury("welcome-ann", error="SMTPRecipientsRefused: no such user", now_ms=NOW_MS - 700_000)
    program.bury("order-1006", error="CardError: the card was refused", now_ms=NOW_MS - 130_000)
    program.enqueue(
        "newsletter-2026-11", queue="mail", effect="send", now_ms=NOW_MS - 600_000,
        run_at_ms=NOW_MS + 7_200_000, stamps=Stamps(max_attempts=5),
    )  # fmt: skip
    program.claim(now_ms=NOW_MS - 18_000, lease_ms=30_000, claimant="shop-2:4711:1795999000")
    program.enqueue("report-weekly", "thumbnail-88123", now_ms=NOW_MS - 240_000)
    program.enqueue(
        "an-id-may-be-as-long-as-sixty-four-characters-and-is-never-cut", now_ms=NOW_MS - 5_000, priority=5
    )
    schedules = [
        ("morning", "0 9 * * mon-fri", "--zone", "Europe/Berlin", "--text", "the orders of the night"),
        ("heartbeat", "15m", "--text", "ping", "--overlap", "skip"),
        ("books", "@monthly", "--zone", "America/New_York", "--text", "close the books", "--queue", "bills"),
    ]
    for name, every, *rest in schedules:
        program("schedule", "add", name, "--every", every, *rest, "--now-ms", str(NOW_MS - 60_000))
    program("schedule", "pause", "books", "--now-ms", str(NOW_MS - 50_000))


def seen(store: str, columns: int, *arguments: str) -> str:
    top = arguments == ("top",)
    command = (*arguments, "--store", "jobs.db", "--now-ms", str(NOW_MS))
    lines = 24 if top else 40
    with Terminal(*command, columns=columns, lines=lines, cwd=Path(store).parent) as terminal:
        if top:
            terminal.until_shown("q quits")
            shown = terminal.text
            terminal.press("q")
        assert terminal.end() in (0, 1)
        shown = shown if top else terminal.text
    return shown.replace(store, SHOWN_AS) + "\n"


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("top", ["top"]),
        ("jobs-list", ["jobs", "list"]),
        ("jobs-show-queued", ["jobs", "show", "report-weekly"]),
        ("jobs-show-held", ["jobs", "show", "order-1005"]),
        ("dead-list", ["dead", "list"]),
        ("queues", ["queues"]),
        ("doctor", ["doctor"]),
        ("schedule-list", ["schedule", "list"]),
        ("schedule-preview", ["schedule", "preview", "morning", "-n", "5"]),
    ],
)
def test_the_screen_is_the_one_that_is_kept(shop: str, name: str, arguments: list[str], columns: int) -> None:
    _compare(name, columns, seen(shop, columns, *arguments))


@pytest.mark.parametrize("columns", [80, 200])
def test_a_busy_ledger_is_drawn_with_rates_as_bars_in_the_room_there_is(columns: int) -> None:
    waves = tuple(100 + 100 * math.sin(step / 4) for step in range(60))
    calm = tuple(3.0 if step % 7 else 0.0 for step in range(60))
    queues = [
        Line(QueueCounts("bills", 0, 12, 8, 1_204_331, 41, 3, None, 0), False, calm[-1], calm),
        Line(QueueCounts("mail", 5_210, 0, 64, 8_400_102, 0, 0, NOW_MS - 42_000, 0), False, waves[-1], waves),
        Line(
            QueueCounts("thumbnails", 88_123, 0, 0, 12, 0, 0, NOW_MS - 7_300_000, 0), True, 0.0, (0.0,) * 60
        ),
    ]
    running = [
        Job(
            f"welcome-{n:05}", "running", 1, NOW_MS + 29_000 - 1_100 * n, 1, "mail", "send",
            claimant=f"shop-{n % 3}:4711:1795999000", claimed_at_ms=NOW_MS - 1_000 - 1_100 * n,
        )
        for n in range(64)
    ]  # fmt: skip
    deaths = [
        Job(
            f"order-{n}", "dead", 3, 0, 3, "bills", "charge", died_at_ms=NOW_MS - 70_000 * n,
            last_error="CardError: the card was refused",
        )
        for n in range(1, 42)
    ]  # fmt: skip
    glance = Snapshot(SHOWN_AS, NOW_MS, queues, 4.2, running, deaths)
    lines = draw(console(io.StringIO(), width=columns), glance, width=columns, height=24)
    assert len(lines) == 24
    _compare("top-busy", columns, "\n".join(line.rstrip() for line in lines) + "\n")


@pytest.mark.parametrize(("columns", "lines"), [(40, 10), (60, 12), (80, 24), (200, 60)])
def test_no_screen_is_too_small_for_the_queues(columns: int, lines: int) -> None:
    counts = [QueueCounts(f"queue-{n}", 1, 0, 0, 0, 0, 0, None, 0) for n in range(30)]
    glance = Snapshot(SHOWN_AS, NOW_MS, [Line(one, False, None, ()) for one in counts], 0, [], [])
    drawn = draw(console(io.StringIO(), width=columns), glance, width=columns, height=lines)
    assert len(drawn) == lines
    assert "queue-0" in drawn[4]
    assert drawn[-1] == "q quits"


def _compare(name: str, columns: int, shown: str) -> None:
    assert all(len(line) <= columns for line in shown.splitlines())
    kept = SCREENS / f"{name}-{columns}.txt"
    if os.environ.get("FENCEPOST_KEEP_SCREENS") == "1":
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(shown, "utf-8")
    assert shown == kept.read_text("utf-8")


def _coloured(store: str, env: dict[str, str]) -> bool:
    with Terminal("jobs", "list", "--store", store, "--now-ms", str(NOW_MS), env=env) as terminal:
        assert terminal.end() == 0
        terminal.until_shown("welcome-bob")
        # 3x and 9x are colours; 1 (bold) and 0 (plain) are not.
        return b"\x1b[3" in terminal.output or b"\x1b[9" in terminal.output


def test_states_are_in_colour_unless_that_is_not_wanted(shop: str) -> None:
    assert _coloured(shop, {})
    assert not _coloured(shop, {"NO_COLOR": "1"})
    assert not _coloured(shop, {"TERM": "dumb"})


def test_a_pipe_gets_json_even_where_a_person_sits_at_the_terminal(shop: str, tmp_path: Path) -> None:
    with (
        (tmp_path / "out").open("wb") as out,
        Terminal("queues", "--store", shop, "--now-ms", str(NOW_MS), stdout=out) as terminal,
    ):
        assert terminal.end() == 0
        assert terminal.output == b""
    assert (tmp_path / "out").read_bytes().startswith(b"{\n")


def test_json_is_there_on_a_terminal_for_the_asking(shop: str) -> None:
    with Terminal("queues", "--json", "--store", shop, "--now-ms", str(NOW_MS), lines=200) as terminal:
        assert terminal.end() == 0
        assert terminal.text.startswith("{")


def test_nothing_that_a_job_contains_can_steer_the_terminal(tmp_path: Path) -> None:
    program = Program(str(tmp_path / "jobs.db"))
    program.enqueue("a")
    program.bury("a", error="\x1b[2J\x1b]0;owned\x07boom\u202ereversed")
    for arguments in (["jobs", "list"], ["jobs", "show", "a"], ["top", "--once"], ["dead", "list"]):
        with Terminal(*arguments, "--store", program.store, "--now-ms", "5", columns=120) as terminal:
            assert terminal.end() == 0
            assert "boom" in terminal.text
            assert b"\x1b[2J" not in terminal.output
            assert b"\x07" not in terminal.output
            assert "\u202e".encode() not in terminal.output


def test_many_jobs_are_moved_once_the_queue_s_name_is_typed(tmp_path: Path) -> None:
    program = Program(str(tmp_path / "jobs.db"))
    program.enqueue("a", "b", queue="mail")
    program.bury("a", "b")
    arguments = ("dead", "purge", "--queue", "mail", "--store", program.store, "--now-ms", "5")
    with Terminal(*arguments) as terminal:
        terminal.until_shown("Type the queue's name to go on:")
        terminal.press("male\n")
        assert terminal.end() == 1
        assert "that was not 'mail'; nothing was changed" in terminal.text
    with Terminal(*arguments) as terminal:
        terminal.until_shown("purge 2 dead jobs of the queue 'mail'")
        terminal.press("mail\n")
        assert terminal.end() == 0
        assert "purged 2 dead jobs" in terminal.text


def test_long_work_has_a_bar_on_the_terminal_and_leaves_none(tmp_path: Path) -> None:
    file, store = tmp_path / "big.jsonl", str(tmp_path / "jobs.db")
    file.write_bytes(b"".join(b'{"id": "j%d", "text": "x"}\n' % number for number in range(2_000)))
    with (tmp_path / "out").open("wb") as out:
        with Terminal("enqueue", "--store", store, "--input", str(file), stdout=out, columns=120) as terminal:
            assert terminal.end() == 0
            assert b"enqueueing" in terminal.output
            assert b"2,000 records" in terminal.output
            assert terminal.text == ""
            assert terminal.left_as_found
        with Terminal("worker", "--store", store, "--max-jobs", "50", stdout=out, columns=120) as terminal:
            assert terminal.end() == 0
            assert b"50 attempts" in terminal.output
            assert terminal.text == ""
            assert terminal.left_as_found
