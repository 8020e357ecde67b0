"""The tutorial's last step, which needs a PostgreSQL server: run here with the suite's own."""

from __future__ import annotations

from pathlib import Path

from fencepost.core.testing import Store

from .pages import ROOT, run_page

PAGE = ROOT / "docs" / "tutorial" / "crash-proof-batch.md"
SAID = "postgresql://me@db.example.org/queue"
REASON = "<!-- not run: it needs a PostgreSQL server; the suite runs it with one of its own -->\n"


def test_the_batch_moves_on_to_postgresql_as_the_tutorial_says(postgres_stores, tmp_path: Path) -> None:
    store: Store = postgres_stores(tmp_path)
    text = PAGE.read_text("utf-8")
    install = f"{REASON}```console\n$ pip install"
    assert text.count(REASON) == 2
    assert SAID in text
    text = text.replace(install, "<!-- not run: it installs from the network -->\n```console\n$ pip install")
    page = tmp_path / "page.md"
    page.write_text(text.replace(REASON, "").replace(SAID, store.name or ""), "utf-8")
    folder = tmp_path / "folder"
    folder.mkdir()
    run_page(page, folder)
