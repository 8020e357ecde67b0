"""What is built is what is in the tree, and works in an environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("core", "plugins", "effects")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy of what git tracks or would track, without what lies about in the tree."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        origin, target = ROOT / name, source / name
        if origin.is_file() and not origin.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(origin.read_bytes())
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)],
        check=True,
        capture_output=True,
    )
    (built,) = out.glob("*.whl")
    return built


def test_the_wheel_holds_every_file_of_the_three_rooms_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        f"fencepost/{path.relative_to(ROOT)}"
        for room in ROOMS
        for path in (ROOT / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    assert packed == expected


def test_the_wheel_works_in_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    binaries = tmp_path / "env" / "bin"
    subprocess.run(
        [
            *(str(binaries / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--constraint", str(ROOT / "constraints.txt"), str(wheel)),
        ],
        check=True,
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    shown = subprocess.run(
        [str(binaries / "fencepost"), "demo", "--input", str(ROOT / "docs/samples/jobs.json")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        check=True,
    )
    assert shown.stderr == b""
    last = json.JSONDecoder().raw_decode(
        shown.stdout.decode()[shown.stdout.decode().rindex('{\n  "schema_version"') :]
    )[0]
    assert {job["State"] for job in last["jobs"]} == {"completed"}
    assert len(last["effects"]) == len(last["jobs"]) == 12


def test_the_checker_s_links_lead_to_the_rooms() -> None:
    for room in ROOMS:
        assert (ROOT / ".typing" / "fencepost" / room).resolve() == ROOT / room


def test_there_is_no_package_above_the_rooms() -> None:
    assert not (ROOT / "__init__.py").exists()
    assert not (ROOT / ".typing" / "fencepost" / "__init__.py").exists()
