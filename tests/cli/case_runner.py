"""Runs black-box cases against the command line, and says where it differs.

Each case file in ``cases/`` is a JSON array of cases:
    name     what it shows
    files    {name: content}; content is text, {"json": value}, {"b64": bytes} or {"parts": [...]},
             where a part is text, {"repeat": [text, count]} or {"records": [count, text]}
    plant    the same, put into the store before the first step
    steps    [{args, exit, stdout, stdout_docs, stderr, plant, background}], run in order;
             {store} and {dir} in args are the case's own folders
             stdout: the one JSON document expected (store paths are written {store})
             stdout_docs: the sequence of JSON documents expected
             stdout "" means nothing at all
             stderr: true (something) or "" (nothing)
    store    {path in the store: parsed JSON expected, or null for "must not exist"}
    modes    {path in the store: octal permission bits}
    names    {folder in the store: [exact file names]}
Values compare exactly, except that an object under "at_least" is compared key by key,
ignoring keys it does not name.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
from typing import Any


def content(spec: Any) -> bytes:
    if isinstance(spec, str):
        return spec.encode()
    if "json" in spec:
        return json.dumps(spec["json"], ensure_ascii=False).encode("utf-8", "surrogatepass")
    if "b64" in spec:
        return base64.b64decode(spec["b64"])
    out = []
    for part in spec["parts"]:
        if isinstance(part, str):
            out.append(part)
        elif "repeat" in part:
            text, count = part["repeat"]
            out.append(text * count)
        else:
            count, text = part["records"]
            out.append(json.dumps([{"id": f"r-{i}", "text": text} for i in range(count)]))
    return "".join(out).encode()


def documents(text: str) -> list[Any]:
    decoder, at = json.JSONDecoder(), 0
    found: list[Any] = []
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        if at == len(text):
            return found
        value, at = decoder.raw_decode(text, at)
        found.append(value)


def same(want: Any, got: Any, path: str = "$") -> str | None:
    """None where got is what is wanted, else where and how they differ."""
    if isinstance(want, dict) and set(want) == {"at_least"}:
        want = want["at_least"]
        if not isinstance(got, dict):
            return f"{path}: {got!r} is no object"
        for key, value in want.items():
            if key not in got:
                return f"{path}.{key}: missing"
            if fault := same(value, got[key], f"{path}.{key}"):
                return fault
        return None
    if isinstance(want, dict) and isinstance(got, dict):
        if set(want) != set(got):
            return f"{path}: keys {sorted(want)} wanted, {sorted(got)} found"
        for key in want:
            if fault := same(want[key], got[key], f"{path}.{key}"):
                return fault
        return None
    if isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return f"{path}: {len(want)} items wanted, {len(got)} found"
        for i, (w, g) in enumerate(zip(want, got, strict=True)):
            if fault := same(w, g, f"{path}[{i}]"):
                return fault
        return None
    if type(want) is not type(got) or want != got:
        return f"{path}: {want!r:.120} wanted, {got!r:.120} found"
    return None


def normal(text: str, store: str) -> str:
    return text.replace(os.path.realpath(store), "{store}").replace(store, "{store}")


def run_case(case: dict[str, Any], command: list[str], ledger_suffix: str = "") -> list[str]:
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        store = os.path.join(folder, "store") + ledger_suffix
        for name, spec in case.get("files", {}).items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(content(spec))
        for name, spec in case.get("plant", {}).items():
            target = os.path.join(store, name)
            os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
            with open(target, "wb") as f:
                f.write(content(spec))
        waiting = []
        for n, step in enumerate(case["steps"]):
            for name, spec in step.get("plant", {}).items():
                target = os.path.join(store, name)
                os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
                with open(target, "wb") as f:
                    f.write(content(spec))
            args = [a.replace("{store}", store).replace("{dir}", folder) for a in step.get("args", [])]
            if args:
                p = subprocess.Popen(
                    command + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder
                )
                waiting.append((n, step, p))
            if step.get("background"):
                continue
            for at, s, p in waiting:
                try:
                    out, err = p.communicate(timeout=s.get("timeout", 120))
                except subprocess.TimeoutExpired:
                    p.kill()
                    faults.append(f"step {at} {s['args'][0]}: no end within {s.get('timeout', 120)} s")
                    continue
                where = f"step {at} {s['args'][0]}"
                out, err = normal(out.decode("utf-8", "replace"), store), err.decode("utf-8", "replace")
                if p.returncode != s.get("exit", 0):
                    faults.append(
                        f"{where}: exit {s.get('exit', 0)} wanted, {p.returncode} found; stderr {err[-200:]!r}"
                    )
                if "Traceback (most recent call last)" in err:
                    faults.append(f"{where}: a traceback on stderr: {err[-160:]!r}")
                if s.get("stderr") is True and not err.strip():
                    faults.append(f"{where}: nothing on stderr")
                if s.get("stderr") == "" and err.strip():
                    faults.append(f"{where}: stderr {err[:160]!r}")
                if s.get("stdout") == "":
                    if out.strip():
                        faults.append(f"{where}: stdout should be empty: {out[:160]!r}")
                elif "stdout" in s or "stdout_docs" in s:
                    want = s["stdout_docs"] if "stdout_docs" in s else [s["stdout"]]
                    try:
                        got = documents(out)
                    except ValueError as e:
                        faults.append(f"{where}: stdout is not JSON: {e}: {out[:160]!r}")
                    else:
                        if fault := same(want, got):
                            faults.append(f"{where}: stdout {fault}")
            waiting = []
        for name, want in case.get("store", {}).items():
            target = os.path.join(store, name)
            if want is None:
                if os.path.lexists(target):
                    faults.append(f"store: {name} should not exist")
                continue
            try:
                with open(target, encoding="utf-8") as f:
                    got = json.load(f)
            except (OSError, ValueError) as e:
                faults.append(f"store: {name}: {e}")
                continue
            if fault := same(want, got):
                faults.append(f"store: {name} {fault}")
        for name, bits in case.get("modes", {}).items():
            got = os.stat(os.path.join(store, name)).st_mode & 0o7777
            if got != int(bits, 8):
                faults.append(f"store: {name} has mode {got:o}, {bits} wanted")
        for name, want in case.get("names", {}).items():
            got = sorted(os.listdir(os.path.join(store, name)))
            if got != sorted(want):
                faults.append(f"store: {name or '.'} holds {got}, {sorted(want)} wanted")
    return faults
