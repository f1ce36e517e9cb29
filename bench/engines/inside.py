"""What runs in an engine's box: it loads the engine's file and passes questions on. Standard library only.

Questions and answers are lines of JSON. What the engine prints goes nowhere near them. An engine's file may import the
functions for terms and windows: ``from ctxbench_engine import identifiers, best_windows``.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import keyword
import math
import os
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
"""Characters of an identifier; a longer one is a literal of some kind."""
_MOST = 300
"""Characters of an exception that are passed on."""


def serve(channel: socket.socket, entry: str, arguments: dict[str, Any]) -> None:
    """Answer questions about the tree in the current folder until nobody asks any more."""
    os.environ["PATH"] = f"{_PACKAGES}:{os.environ.get('PATH', '')}"
    lines = channel.makefile("rw", encoding="utf-8", errors="replace", newline="\n")
    root = str(Path.cwd())
    engine: Any = None
    for line in lines:
        question = json.loads(line)
        try:
            if engine is None:
                engine = getattr(importlib.import_module(_SOURCE), entry)(**arguments)
            answer = {"answer": _answer(engine, root, question)}
            text = json.dumps(answer)
        except Exception as error:  # noqa: BLE001 - whatever an engine raises is told
            traceback.print_exc()
            text = json.dumps({"raised": f"{type(error).__name__}: {error}"[:_MOST]})
        lines.write(text + "\n")
        lines.flush()


def _answer(engine: Any, root: str, question: dict[str, Any]) -> Any:
    call = question["call"]
    if call == "search":
        return engine.search(question["text"], question["path"], question["line"], question["top"])
    if call == "update":
        return _update(engine, root, question["texts"])
    before = _used(root)
    told = engine.index(root)
    return {"told": told, "bytes": max(0, _used(root) - before)}


def _update(engine: Any, root: str, texts: dict[str, str | None]) -> None:
    for path, text in texts.items():
        file = Path(root, path)
        if text is None:
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode("utf-8", "replace"))
    if hasattr(engine, "update"):
        engine.update(sorted(texts))
    else:
        engine.index(root)


def _used(folder: str) -> int:
    """Return how many bytes of the box's disk are in use."""
    sys.stdout.flush()
    status = os.statvfs(folder)
    return (status.f_blocks - status.f_bfree) * status.f_frsize


def identifiers(text: str, lines: int = 20) -> dict[str, float]:
    """Return the identifiers of the last lines of a text with weights: 1 in the last line, less before it.

    Words of the languages, and those of one or two letters, are left out.
    """
    weights: dict[str, float] = {}
    for age, line in enumerate(reversed(text.split("\n")[-lines:])):
        for name in _IDENTIFIER.findall(line):
            if name not in _COMMON and len(name) <= _LONGEST:
                weights.setdefault(name, 1 / (1 + age / 4))
    return weights


def best_windows(
    hits: Iterable[tuple[str, int, str]], weights: Mapping[str, float], size: int, top: int
) -> list[tuple[str, int, int, float]]:
    """Return the windows of lines that hold the most weight of terms, rare ones counting more; none overlap.

    Args:
        hits: (path, line from 0, term) each.
        weights: term -> weight.
        size: lines of a window.
        top: windows at most.
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
    scores = {window: sum(rarity[term] for term in terms) for window, terms in windows.items()}
    chosen: list[tuple[str, int, int, float]] = []
    taken: set[tuple[str, int]] = set()
    for path, at in sorted(scores, key=lambda window: (-scores[window], window)):
        if taken.isdisjoint((path, other) for other in range(at - reach, at + reach + 1)):
            taken.add((path, at))
            chosen.append((path, at * stride, at * stride + size, scores[path, at]))
        if len(chosen) == top:
            break
    return chosen
