"""The page on the Python API names every public name of ``fencepost.core``, and every field of what producers make."""

import re
from dataclasses import fields

import fencepost.core
import pytest
from fencepost.core import NewJob, Stamps

from .pages import ROOT

PAGE = (ROOT / "docs" / "reference" / "python.md").read_text()


@pytest.mark.parametrize("name", fencepost.core.__all__)
def test_every_public_name_is_on_the_page(name):
    assert re.search(rf"`[^`\n]*\b{name}\b[^`\n]*`", PAGE)


@pytest.mark.parametrize("value", [NewJob, Stamps])
def test_every_field_of_a_new_job_is_in_its_table(value):
    table = re.search(rf"^\| field of `{value.__name__}`.*?(?=\n\n)", PAGE, re.MULTILINE | re.DOTALL)[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [field.name for field in fields(value)]
