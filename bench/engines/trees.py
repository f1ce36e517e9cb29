"""The files that an engine's box holds: only what the views of all its samples show. Pure.

What a view shows of a target file is decided in one place, `bench.masking.visible_target`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ctxbench.bench.masking import is_hidden, visible_target
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.types import Sample


def of_file(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the tree for the samples of one target file.

    That file has the lines before the earliest cursor; a line that one of the samples masks is blank.

    Args:
        snapshot: the whole repository.
        samples: all samples of that file, of which none may see another's answer.
    """
    tree = _bare(snapshot, samples)
    target = samples[0].path
    tree[target] = _common(snapshot, samples)
    return dict(sorted(tree.items()))


def of_repository(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the tree for all samples of a repository: target files are whole, and are cut before each question."""
    return _bare(snapshot, samples)


def cut_target(snapshot: Snapshot, sample: Sample) -> str:
    """Return what one sample's view shows of its file before the line of the cursor, for a tree of all samples."""
    return _common(snapshot, [sample])


def masked_lines(snapshot: Snapshot, samples: Sequence[Sample]) -> frozenset[str]:
    """Return the lines of a target file that one of its samples masks, blank ones left out."""
    lines = snapshot.texts.get(samples[0].path, "").split("\n")
    spans = [lines[start:end] for sample in samples for start, end in sample.masked]
    return frozenset(line for span in spans for line in span if line.strip())


def without(text: str, lines: frozenset[str]) -> str:
    """Return a text in which some lines are blank."""
    return "\n".join("" if line in lines else line for line in text.split("\n")) if lines else text


def _bare(snapshot: Snapshot, samples: Sequence[Sample]) -> dict[str, str]:
    """Return the files that no sample hides."""
    hidden = tuple({place for sample in samples for place in sample.hidden})
    return {path: text for path, text in snapshot.texts.items() if not is_hidden(path, hidden)}


def _common(snapshot: Snapshot, samples: Sequence[Sample]) -> str:
    """Return the lines of a target file that every sample's view shows, up to the earliest cursor line."""
    shown: list[list[str]] = []
    for sample in samples:
        target = visible_target(snapshot.texts.get(sample.path), sample.query(), sample.masked)
        if not target.trusted:
            # Its lines cannot be told apart from those of another version of the file.
            return ""
        shown.append(target.text.split("\n")[: sample.cursor.line])
    lines = [row[0] if len(set(row)) == 1 else "" for row in zip(*shown, strict=False)]
    return "".join(f"{line}\n" for line in lines)


def line_counts(tree: Mapping[str, str]) -> dict[str, int]:
    """Return path -> number of lines."""
    return {path: text.count("\n") + (not text.endswith("\n") and bool(text)) for path, text in tree.items()}
