"""The effect by itself, and in the crash kit of Fencepost (the fixture ``effect_case``)."""

import pytest
from fencepost.plugins import PluginError
from fencepost.plugins.testing import make_request
from fencepost_letters import Letters


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "letters"
    folder.mkdir()
    return folder


def test_it_keeps_its_promise_wherever_a_worker_dies(effect_case, folder):
    case = effect_case(
        "letter",
        settings={"folder": str(folder)},
        observed=lambda: len(list(folder.glob("*.txt"))),
        text="Dear reader",
    )
    case.check()
    assert {letter.read_text() for letter in folder.glob("*.txt")} == {"Dear reader"}


def test_the_letter_says_the_text_byte_for_byte(folder):
    letters = Letters()
    letters.effect_configure({"folder": str(folder)})
    outcome = letters.effect_apply(make_request("Zeile 1\r\nZeile 2 ✓"))
    assert (folder / outcome["file"]).read_bytes() == "Zeile 1\r\nZeile 2 ✓".encode()


def test_an_empty_letter_is_refused_at_enqueue():
    with pytest.raises(ValueError, match="must say something"):
        Letters().effect_validate("  \n")


def test_a_folder_that_is_not_there_is_said_before_any_job_is_taken(tmp_path):
    with pytest.raises(PluginError, match="there is no folder"):
        Letters().effect_configure({"folder": str(tmp_path / "none")})
