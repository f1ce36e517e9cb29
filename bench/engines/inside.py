"""The program in an engine's box: loads the engine's file and forwards questions. Standard library only."""

from __future__ import annotations

import base64
import contextlib
import importlib
import io
import json
import keyword
import math
import os
import pickle
import re
import socket
import sys
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

_SOURCE = "ctxbench_engine_source"
_PACKAGES = "/ctxbench/site/bin"
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$]{2,}")
_JAVA = (
    "abstract assert boolean break byte case catch char class const continue default double else enum extends final "
    "finally float for goto if implements import instanceof int interface long native new null package private "
    "protected public return short static super switch synchronized this throw throws transient try var void volatile "
    "while true false record String"
)
_COMMON = frozenset([*keyword.kwlist, *_JAVA.split(), "self", "cls", "str", "list", "dict", "Object", "Override"])
_LONGEST = 100
"""Most characters of an identifier. Longer words are literals."""
_MOST = 600
STATE = ".ctxbench-state"
"""File in a new box with another box's state."""
PART = 2 << 20


def serve(channel: socket.socket, entry: str, arguments: dict[str, Any]) -> None:
    """Answer questions about the files in the current folder until the channel closes."""
    os.environ["PATH"] = f"{_PACKAGES}:{os.environ.get('PATH', '')}"
    lines = channel.makefile("rw", encoding="utf-8", errors="replace", newline="\n")
    root = str(Path.cwd())
    session: Session | None = None
    for line in lines:
        question = json.loads(line)
        try:
            session = session or Session(entry, arguments, root)
            text = json.dumps({"answer": session.answer(question)})
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is told
            traceback.print_exc()
            text = json.dumps({"raised": f"{type(error).__name__}: {error}"[:_MOST]})
        lines.write(text + "\n")
        lines.flush()


class Session:
    """An engine and its files, in the box of one target file or repository."""

    def __init__(self, entry: str, arguments: dict[str, Any], root: str) -> None:
        """Create the engine, or load the state of another box."""
        self._root, self._saved = root, b""
        self._told: Any = None
        self._bytes = 0
        state = Path(root, STATE)
        if state.exists():
            self._load(state)
        else:
            self._engine: Any = getattr(importlib.import_module(_SOURCE), entry)(**arguments)

    def answer(self, question: dict[str, Any]) -> Any:
        """Return the answer to a question, as JSON data."""
        call, engine = question["call"], self._engine
        if call == "search":
            return engine.search(question["text"], question["path"], question["line"], question["top"])
        if call == "heard":
            return str(getattr(engine, "heard", ""))[:_MOST]
        if call == "save":
            return self._save(question["offset"])
        if "texts" in question:
            _write(self._root, question["texts"])
            if call == "index":
                _in_order(self._root)
        before = _used(self._root)
        if call == "base":
            if self._told is None and getattr(engine, "follows", hasattr(engine, "update")):
                self._told = engine.index(self._root)
        elif hasattr(engine, "update") and self._told is not None:
            engine.update(sorted(question["texts"]))
        else:
            self._told = engine.index(self._root)
        self._bytes += max(0, _used(self._root) - before)
        return {"told": self._told, "bytes": self._bytes, "memory": _memory()}

    def _save(self, offset: int) -> str:
        """Return a part of the state as base64; empty if the engine does not declare ``saves``."""
        import tarfile  # noqa: PLC0415 - few boxes need it

        if not offset and self._told is not None and getattr(self._engine, "saves", False):
            state = Path(self._root, STATE)
            state.write_bytes(pickle.dumps((self._engine, self._told, self._bytes)))
            files = io.BytesIO()
            with tarfile.open(fileobj=files, mode="w") as tar:
                tar.add(Path(self._root).parent, ".")
            self._saved = files.getvalue()
            state.unlink()
        return base64.b64encode(self._saved[offset : offset + PART]).decode()

    def _load(self, state: Path) -> None:
        import tarfile  # noqa: PLC0415

        with tarfile.open(fileobj=io.BytesIO(state.read_bytes())) as tar:
            tar.extraction_filter = lambda member, _: member
            tar.extractall(Path(self._root).parent)  # noqa: S202 - by this engine, in such a box
        self._engine, self._told, self._bytes = pickle.loads(state.read_bytes())  # noqa: S301
        state.unlink()


def _write(root: str, texts: dict[str, str | None]) -> None:
    for path, text in texts.items():
        file = Path(root, path)
        if text is None:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "replace"))


def _in_order(root: str) -> None:
    """Recreate all folder entries, so that a listing looks as if all files were written at once."""
    entered = {root}
    for file in sorted(f"{folder}/{name}" for folder, _, names in os.walk(root) for name in names):
        entry, entries = file, []
        while entry not in entered:
            entered.add(entry)
            entries.append(entry)
            entry = entry.rpartition("/")[0]
        for later in reversed(entries):
            Path(later).rename(f"{root}/{STATE}").rename(later)


def _used(folder: str) -> int:
    sys.stdout.flush()
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def _memory() -> int:
    total = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # it has ended
            total += sum(1024 * int(peak) for peak in re.findall(r"VmHWM:\s+(\d+)", status.read_text()))
    return total


def identifiers(text: str, lines: int = 20) -> dict[str, float]:
    """Return the identifiers of a text's last lines with weights: 1 in the last line, less above it."""
    weights: dict[str, float] = {}
    for age, line in enumerate(reversed(text.split("\n")[-lines:])):
        for name in _IDENTIFIER.findall(line):
            if name not in _COMMON and len(name) <= _LONGEST:
                weights.setdefault(name, 1 / (1 + age / 4))
    return weights


def best_windows(
    hits: Iterable[tuple[str, int, str]], weights: Mapping[str, float], size: int, top: int
) -> list[tuple[str, int, int, float]]:
    """Return the windows of lines with the highest weight of terms. Rare terms count more. Windows do not overlap.

    Args:
        hits: (path, line from 0, term).
        weights: term -> weight.
        size: lines of a window.
    """
    stride = max(1, size // 2)
    # The first line of a window is a multiple of the stride; it overlaps with so many before it, and behind it.
    reach = math.ceil(size / stride) - 1
    windows: dict[tuple[str, int], set[str]] = defaultdict(set)
    files: dict[str, set[str]] = defaultdict(set)
    for path, line, term in hits:
        files[term].add(path)
        for at in range(max(0, line // stride - reach), line // stride + 1):
            if line < at * stride + size:
                windows[path, at].add(term)
    rarity = {term: weights.get(term, 0.0) / (1 + math.log(len(paths))) for term, paths in files.items()}
    scores = {window: math.fsum(rarity[term] for term in terms) for window, terms in windows.items()}
    chosen: list[tuple[str, int, int, float]] = []
    taken: set[tuple[str, int]] = set()
    for path, at in sorted(scores, key=lambda window: (-scores[window], window)):
        if taken.isdisjoint((path, other) for other in range(at - reach, at + reach + 1)):
            taken.add((path, at))
            chosen.append((path, at * stride, at * stride + size, scores[path, at]))
        if len(chosen) == top:
            break
    return chosen
