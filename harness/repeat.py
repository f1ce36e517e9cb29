"""The command that makes a stored run again: the same choices, and so the same run id. Pure, no I/O.

What decides how fast a run goes and nothing of its numbers (workers, a generator's concurrency, the name of the
variable with its key) is stored nowhere, so no command can name it. Another version of ctxbench, of a strategy or
of the sample set gives another id: that is what ids are for.
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
class Choices:
    """What was chosen for a run, as the store keeps it."""

    samples: str
    """Name of the sample set."""
    limit: int | None
    """How many samples were chosen of the set; None for all."""
    strategy: str
    """Canonical spec; of an imported run its label."""
    generator: str
    n: int
    """Completions a sample."""
    seed: int
    sampling: str
    """How they were decoded, as JSON (`harness.runspec.sampling_key`)."""
    sandbox: str = ""
    """Back end that judged its functions; empty if nothing says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The file that a run was imported from."""

    format: str
    source: str
    """The path as it was given."""
    known: bool = True
    """Whether its samples are those of a sample set; False where the file itself told what they are."""
    language: str = ""
    """The language of its samples; empty if they are in several."""
    labels: tuple[str, ...] = ("strategy", "generator")
    """Which labels to name: all, but where one file holds several runs only those that all of them have."""


def command(run: Choices, file: File | None = None, *, options: Sequence[str] = ()) -> str:
    """Return the command line that makes a run again, quoted for a POSIX shell.

    Args:
        run: what was chosen.
        file: where it was imported from; None for a run that was made here.
        options: more words before the rest's end, such as ``--home FOLDER``.
    """
    words = _imported(run, file, options) if file is not None else _made(run, options)
    return shlex.join([PROGRAM, *words])


def place(home: Home, url: str, shown: str) -> list[str]:
    """Return the options that say where things are kept.

    Args:
        home: the home folder.
        url: SQLAlchemy URL of the results.
        shown: the same as it may be shown, without a password.
    """
    words = ["--home", str(home.root)]
    if url != home.database:
        # Of a file only the URL is one that --db takes; it has no password.
        words += ["--db", url if url.startswith("sqlite:") else shown]
    return words


def judging(run: Choices, id_: str, *, options: Sequence[str] = ()) -> str:
    """Return the command line that judges the stored completions of a run that have no verdict yet.

    Args:
        run: what was chosen.
        id_: the run's id.
        options: more words.
    """
    return shlex.join([PROGRAM, "exec", "--samples", run.samples, "--run", id_, *options])


def _made(run: Choices, options: Sequence[str]) -> list[str]:
    words = ["run", "--samples", run.samples, "--strategy", run.strategy, "--generator", run.generator]
    if run.limit is not None:
        words += ["--limit", str(run.limit)]
    if run.n > 1:
        words += ["--n", str(run.n)]
    if run.seed:
        words += ["--seed", str(run.seed)]
    return [*words, *_decoding(run), *(["--sandbox", run.sandbox] if run.sandbox else []), *options]


def _decoding(run: Choices) -> list[str]:
    """Return the options of decoding; left out where nothing else is taken without them."""
    decoding: dict[str, Any] = json.loads(run.sampling)
    found = float(decoding["temperature"]), float(decoding["top_p"])
    # What several completions are decoded with depends on their kind; said, it need not be known.
    words = [] if run.n == 1 and found == _GREEDY else ["--temperature", repr(found[0]), "--top-p", repr(found[1])]
    return words + (["--fim"] if decoding.get("fim") else [])


def _imported(run: Choices, file: File, options: Sequence[str]) -> list[str]:
    words = ["results", "import", "--format", file.format]
    if file.known:
        words += ["--samples", run.samples]
    for label in file.labels:
        words += [f"--{label}", getattr(run, label)]
    if file.language:
        words += ["--language", file.language]
    # A file may be called as an option is.
    end = ["--"] if file.source.startswith("-") else []
    return [*words, *options, *end, file.source]
