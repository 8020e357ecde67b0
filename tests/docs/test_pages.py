"""Every command and code block of the documentation does what the page says."""

import os

import psycopg
import pytest

from tests.postgres_server import server

from .pages import ROOT, PageError, blocks, commands, matches, run_page

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if not path.is_relative_to(
        ROOT / "docs" / "examples"
    )  # run where they are installed, by test_examples.py
)


@pytest.fixture
def shop():
    """A PostgreSQL server with an empty database ``shop``: the variables of the programs that use it."""
    with server(durable=True) as own:
        with psycopg.connect(own.url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE shop")
        path = os.pathsep.join([str(own.programs), os.environ["PATH"]])
        yield {"PGHOST": str(own.folder), "PGUSER": "fencepost", "PATH": path}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_does_what_it_says(page, tmp_path, request):
    # A URL without a host: that comes from the environment.
    env = request.getfixturevalue("shop") if "postgresql:///" in page.read_text() else None
    run_page(page, tmp_path, env=env)


def test_every_block_that_is_not_run_says_why():
    reasons = [
        block.not_run for page in PAGES for block in blocks(page.read_text()) if block.not_run is not None
    ]
    assert all(len(reason.split()) >= 3 for reason in reasons), reasons


# -- The runner itself --


def page(tmp_path, text):
    path = tmp_path / "page.md"
    path.write_text(text)
    folder = tmp_path / "folder"
    folder.mkdir()
    return run_page(path, folder)


def test_files_commands_and_scripts_share_a_folder_and_a_shell(tmp_path):
    text = """
<!-- file: sub/a.txt -->
```toml
a = 1
```
```console
$ cd sub && export B=2
$ cat a.txt
a = 1
$ echo "$B and
> more"
2 and
more
```
   ```python
   with open("c", "w") as file:
       file.write("3")
   ```
"""
    assert page(tmp_path, text) == 3
    assert (tmp_path / "folder" / "sub" / "c").read_text() == "3"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("```console\n$ false\n```", "page.md:1: `false` ended with status 1, not 0"),
        ("\n```console\n$ echo a\nb\n```", "page.md:2: `echo a` said\na"),
        ("```python\n1 / 0\n```", "ZeroDivisionError"),
        ("```console\nls\n```", "commands stand after"),
        ("```yaml\na: 1\n```", "a block in yaml is neither run nor explained"),
        ("```\nls\n```", "a block in no language is neither run nor explained"),
        ("<!-- exits 1 -->\n```console\n$ true\n```", "`true` ended with status 0, not 1"),
        ("```console\n$ exit 0\n```", "`exit 0` ended the shell"),
    ],
)
def test_a_page_that_says_what_is_not_so_fails(tmp_path, text, says):
    with pytest.raises(PageError) as failed:
        page(tmp_path, text)
    assert says in str(failed.value)


@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("```text\nanything\n```", 0),
        ("```{include} other.md\n```", 0),
        ("<!-- not run: it needs a systemd of its own -->\n```ini\n[Unit]\n```", 0),
        ("<!-- exits 3 -->\n```console\n$ true\n$ (exit 3)\n```", 1),
        ("```console\n$ printf 'a\\nb'\na\nb\n```\n```python\nprint(1)\n```", 2),
        ("```console\n$ echo one two three\none ... three\n```", 1),
        ("```console\n$ sleep 60 &\n$ echo x\nx\n```", 1),
    ],
)
def test_a_page_that_says_what_is_so_passes(tmp_path, text, ran):
    assert page(tmp_path, text) == ran


def test_commands_and_their_outputs_are_told_apart():
    assert list(commands("$ a\n1\n$ b \\\n> c\n$ d")) == [("a", "1"), ("b \\\nc", ""), ("d", "")]


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [("a...c", "abc\n", True), ("a.c", "abc", False), ("a b", "a\nb", True), ("a", "b", False)],
)
def test_three_dots_are_any_text_and_one_is_a_dot(expected, got, same):
    assert matches(expected, got) is same
