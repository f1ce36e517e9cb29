"""Count the static prior: common tokens, their n-grams, the classes and spelling of the others.

For Python the counts come from the standard library of the running interpreter, for Java from the
folders given. Only counts are kept, and the texts of tokens that stand in many files.

    python -m scripts.fit_incontext.count LANGUAGE OUT.npz [FOLDER …]
"""

from __future__ import annotations

import argparse
import itertools
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ctxbench.bench.languages.base import Language
from ctxbench.bench.languages.python import PYTHON
from ctxbench.harness.generators.incontext.frame import Frame, advance
from ctxbench.harness.generators.incontext.lexer import IDENTIFIERS, Token, TokenClass, words
from ctxbench.harness.generators.incontext.model import ALPHABET, END, STEPS, code, context_keys
from ctxbench.harness.generators.incontext.source import clean

STATIC = 500
"""Tokens listed."""
MOST = {1: 4, 2: 2600, 3: 6500}
"""N-grams kept, by order."""
WORDS = 1600
"""Parts of names listed."""
LEAST_FILES = 12


def files(language: Language, folders: list[Path]) -> Iterator[Path]:
    """Yield the files to count."""
    if language == PYTHON:
        root = Path(sysconfig.get_paths()["stdlib"])
        skip = {"test", "tests", "site-packages", "idlelib", "lib2to3", "turtledemo", "__pycache__", "encodings"}
        yield from (p for p in sorted(root.rglob("*.py")) if not skip & set(p.relative_to(root).parts))
        return
    for folder in sorted(folders):
        yield from (p for p in sorted(folder.rglob("*.java")) if "/test/" not in p.as_posix())


def _codes(array: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    return np.clip(np.round(array * STEPS), 0, 255).astype(np.uint8)


def static_tokens(streams: list[list[Token]]) -> list[str]:
    """Choose the tokens to list, the most frequent first."""
    counts: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for tokens in streams:
        entries = [t.entry for t in tokens if "\0" not in t.text and len(t.text) < 40]
        counts.update(entries)
        spread.update(set(entries))
    common = [(n, entry) for entry, n in counts.items() if spread[entry] >= LEAST_FILES]
    return [entry for n, entry in sorted(common, key=lambda pair: (-pair[0], pair[1]))[:STATIC]]


def count(streams: list[list[Token]]) -> dict[str, npt.NDArray[np.generic]]:
    """Count everything and quantise it."""
    listed = static_tokens(streams)
    static = {text: number for number, text in enumerate(["", *listed])}
    tables: tuple[dict[int, Counter[int]], ...] = ({}, {}, {})
    classes = np.full((len(TokenClass), len(TokenClass)), 0.05)
    counts: Counter[str] = Counter()
    for tokens in streams:
        frame = Frame()
        for at, token in enumerate(tokens):
            recent = tuple(tokens[max(0, at - 2) : at])
            number = static.get(token.entry, 0)
            if number:
                for table, key in zip(tables, context_keys(recent, frame.opener, static), strict=True):
                    table.setdefault(key, Counter())[number] += 1
            else:
                classes[recent[-1].kind if recent else 0, token.kind] += 1
            frame = advance(frame, token)
        counts.update({t.text for t in tokens if t.kind in IDENTIFIERS or t.kind is TokenClass.STRING})
    # Sorted: the order of a set is another in every process, and would decide ties.
    common = Counter(word.lower() for text in sorted(counts) for word in words(text[:60])).most_common(WORDS)
    spell = np.full((ALPHABET, ALPHABET), 0.02)
    for text in counts:
        for word in words(text[:60]):
            places = [END, *(code(char) for char in word), END]
            for last, place in itertools.pairwise(places):
                spell[last, place] += 1
    arrays = _packed(tables)
    arrays["tokens"] = np.frombuffer("\0".join(listed).encode(), np.uint8)
    arrays["classes"] = _codes(-np.log2(classes / classes.sum(axis=1, keepdims=True)))
    arrays["spell"] = _codes(-np.log2(spell / spell.sum(axis=1, keepdims=True)))
    arrays["words"] = np.frombuffer("\0".join(word for word, _ in common).encode(), np.uint8)
    arrays["word_counts"] = _codes(np.log2(np.array([float(times) for _, times in common])))
    return arrays


def _packed(tables: tuple[dict[int, Counter[int]], ...]) -> dict[str, npt.NDArray[np.generic]]:
    keys: list[int] = []
    lengths: list[int] = []
    ids: list[int] = []
    counts: list[float] = []
    backoffs: list[float] = []
    for order, table in enumerate(tables, 1):
        pairs = sorted(((n, key, number) for key, row in table.items() for number, n in row.items()), reverse=True)
        successors: dict[int, list[tuple[int, int]]] = {}
        for n, key, number in pairs if order == 1 else pairs[: MOST[order]]:
            successors.setdefault(key, []).append((number, n))
        for key in sorted(successors):
            row = sorted(successors[key])
            keys.append(key)
            lengths.append(len(row))
            ids.extend(number for number, _ in row)
            counts.extend(n for _, n in row)
            # What is left to wider contexts: one for each kind of continuation, and all that was dropped.
            backoffs.append(len(table[key]) + sum(table[key].values()) - sum(n for _, n in row))
    return {
        "keys": np.diff(np.array([0, *keys])).astype(np.int32),
        "lengths": np.array(lengths, np.uint16),
        "ids": np.array(ids, np.uint16),
        "counts": _codes(np.log2(np.array(counts))),
        "rest": _codes(np.log2(np.array(backoffs))),
    }


def main() -> None:
    """Write the prior's arrays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", type=Language)
    parser.add_argument("out", type=Path)
    parser.add_argument("folder", type=Path, nargs="*")
    options = parser.parse_args()
    streams = [
        clean(path.read_text("utf-8", "replace"), options.language, whole=True)
        for path in files(options.language, options.folder)
    ]
    arrays: dict[str, Any] = dict(count(streams))
    np.savez_compressed(options.out, **arrays)
    print(f"{len(streams)} files, {sum(map(len, streams))} tokens, {options.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
