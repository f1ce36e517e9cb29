"""Commands that repeat a stored run: the same choices, and so the same run id. Pure, no I/O.

Options that change a run's speed and none of its numbers (workers, a generator's concurrency, the name of the variable
with its key) are not stored, so no command can name them. Another version of ctxbench, of a strategy or of the sample
set gives another id.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.home import Home

PROGRAM = "ctxbench"
_GREEDY = (0.0, 1.0)
"""Temperature and top-p that ``ctxbench run`` takes for one completion a sample when none is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChoices:
    """The choices of a run, as the store keeps them."""

    samples: str
    """Name of the sample set."""
    limit: int | None
    """How many samples were chosen of the set; None for all."""
    strategy: str
    """Canonical spec; for an imported run its label."""
    generator: str
    n: int
    """Completions a sample."""
    seed: int
    sampling: str
    """How they were decoded, as JSON (`harness.runspec.sampling_key`)."""
    sandbox: str = ""
    """Back end that judged its functions; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """The file that a run was imported from."""

    format: str
    source: str
    """The path as the user wrote it."""
    has_sample_set: bool = True
    """Whether its samples are those of a sample set; False if the file itself describes them."""
    language: str = ""
    """The language of its samples; empty if they are in several."""
    labels: tuple[str, ...] = ("strategy", "generator")
    """Labels to name: all, or, if one file holds several runs, those that all of them share."""


def command(run: StoredChoices, file: ImportedFile | None = None, *, options: Sequence[str] = ()) -> str:
    """Return the command line that makes a run again, quoted for a POSIX shell.

    Args:
        run: its choices.
        file: where it was imported from; None for a run that was made here.
        options: more words before the rest's end, such as ``--home FOLDER``.
    """
    words = _import_words(run, file, options) if file is not None else _run_words(run, options)
    return shlex.join([PROGRAM, *words])


def place(home: Home, url: str, shown_url: str) -> list[str]:
    """Return the options that say where things are kept.

    Args:
        home: the home folder.
        url: SQLAlchemy URL of the results.
        shown_url: the same without its password.
    """
    words = ["--home", str(home.root)]
    if url != home.database:
        # The URL of a SQLite file has no password, and only the URL is what --db takes.
        words += ["--db", url if url.startswith("sqlite:") else shown_url]
    return words


def judging(run: StoredChoices, id_: str, *, options: Sequence[str] = ()) -> str:
    """Return the command line that judges the stored completions of a run that have no verdict yet.

    Args:
        run: its choices.
        id_: the run's id.
        options: more words.
    """
    return shlex.join([PROGRAM, "exec", "--samples", run.samples, "--run", id_, *options])


def _run_words(run: StoredChoices, options: Sequence[str]) -> list[str]:
    words = ["run", "--samples", run.samples, "--strategy", run.strategy, "--generator", run.generator]
    if run.limit is not None:
        words += ["--limit", str(run.limit)]
    if run.n > 1:
        words += ["--n", str(run.n)]
    if run.seed:
        words += ["--seed", str(run.seed)]
    return [*words, *_decoding(run), *(["--sandbox", run.sandbox] if run.sandbox else []), *options]


def _decoding(run: StoredChoices) -> list[str]:
    """Return the options of decoding; none if they are the defaults."""
    decoding: dict[str, Any] = json.loads(run.sampling)
    temperature, top_p = float(decoding["temperature"]), float(decoding["top_p"])
    words = ["--fim"] if decoding.get("fim") else []
    # The defaults of several completions depend on their kind, so their options are always written.
    if run.n > 1 or (temperature, top_p) != _GREEDY:
        words = ["--temperature", repr(temperature), "--top-p", repr(top_p), *words]
    return words


def _import_words(run: StoredChoices, file: ImportedFile, options: Sequence[str]) -> list[str]:
    words = ["results", "import", "--format", file.format]
    if file.has_sample_set:
        words += ["--samples", run.samples]
    for label in file.labels:
        words += [f"--{label}", getattr(run, label)]
    if file.language:
        words += ["--language", file.language]
    # A file's name may look like an option.
    end = ["--"] if file.source.startswith("-") else []
    return [*words, *options, *end, file.source]
