"""Asking the doctor, and seeing that nothing has changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cli.inprocess import run


@dataclass(frozen=True)
class Doctor:
    """``fencepost doctor`` on one store."""

    store: str
    always: frozenset[str] = frozenset()
    """What is found in every store of this kind in the tests, and is left out of what the methods return."""

    def report(self, *arguments: str, now_ms: str = "60000") -> dict[str, Any]:
        """What is printed; the exit status must say whether anything was found."""
        ended = run("doctor", "--store", self.store, "--now-ms", now_ms, *arguments)
        assert ended.err == ""
        report: dict[str, Any] = json.loads(ended.out)
        assert ended.status == (1 if report["findings"] else 0)
        assert report["sound"] == (not report["findings"])
        found = {finding["check"] for finding in report["findings"]}
        assert self.always <= found or "unreadable-ledger" in found
        report["findings"] = [one for one in report["findings"] if one["check"] not in self.always]
        return report

    def checks(self, *arguments: str, now_ms: str = "60000") -> list[str]:
        """Which checks have found something."""
        return [finding["check"] for finding in self.report(*arguments, now_ms=now_ms)["findings"]]


def picture(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below the folder: its mode, when it was changed, what is in it."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }
