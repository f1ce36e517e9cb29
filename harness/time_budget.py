"""Plans `ctxbench decide --budget`: how many samples fit into the time limit, and errors if the limit is too short."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.concurrency import Progress, Tick
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256, write_atomic
from ctxbench.bench.home import Home

MOST = 1000
_FEWEST = 20
_SIZES = (*range(_FEWEST, 100, 10), *range(100, 300, 25), *range(300, MOST + 1, 50))
"""Allowed numbers of samples. The list is so short that a later commit usually gets the same number."""
WARM, PILOT = 2, 16
"""Number of samples that warm up model and engines, and number of samples that are timed."""
_MARGIN = 0.85
"""Share of the time after the pilot that is planned; the rest is reserve."""
_PILOT_SHARE, _RUN_SHARE = 0.6, 1.2
"""Shares of the budget after which the pilot, and the run, are stopped."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def read_time(text: str) -> float | None:
    """Return the seconds of a time such as ``90s``, ``10m`` or ``1.5h``; None for 0 and for any other text."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", text.strip())
    return float(match[1]) * _UNITS[match[2]] or None if match else None


def fitting(seconds: float, per_sample: float, *, most: int) -> int:
    """Return how many samples fit into a time: `most`, or a smaller allowed number; 0 if the smallest does not fit.

    Args:
        seconds: available time.
        per_sample: seconds per sample, summed over all strategies.
    """
    sizes = [size for size in _SIZES if size < most and size * per_sample <= seconds]
    return most if most * per_sample <= seconds else max(sizes, default=0)


@dataclass(slots=True, kw_only=True)
class TimeBudget:
    """The time limit of a command, and its progress in completions."""

    seconds: float | None
    """Time limit in seconds; None for no limit."""
    began: float
    """Start of the command, in `time.monotonic` seconds like all times here."""
    strategies: int
    asks_model: bool = True
    """Whether a model writes completions, so that a smaller model could save time."""
    finished: int = 0
    """Completions since the last call of `start`, summed over all strategies."""
    _since: float = 0.0
    _total: int = 0

    @property
    def pilot_end(self) -> float:
        """Time when the pilot is stopped: after 60% of the time limit, or never (infinity) without one."""
        return self.began + _PILOT_SHARE * (self.seconds or math.inf)

    @property
    def end(self) -> float:
        """Time when the run is stopped: after 120% of the time limit, or never (infinity) without one."""
        return self.began + _RUN_SHARE * (self.seconds or math.inf)

    def start(self, now: float, samples: int) -> None:
        """Restart the count of completions for the next phase, over `samples` samples."""
        self.finished, self._since, self._total = 0, now, samples * self.strategies

    def counting(self, progress: Progress) -> Progress:
        """Wrap `progress` so that it also counts completions in `finished`."""

        @contextlib.contextmanager
        def counted(label: str, total: int) -> Iterator[Tick]:
            with progress(label, total) as tick:

                def count(step: int, missing: int = 0) -> None:
                    self.finished += step - missing
                    tick(step, missing)

                yield count

        return counted

    def planned(self, now: float, seconds: Sequence[float], *, most: int) -> int:
        """Return how many samples fit into the time left at `now`, after the pilot, less a reserve; at most `most`.

        `seconds` are the seconds per sample of each strategy.

        Raises:
            InputFault: if not even the smallest allowed number fits.
        """
        per_sample, left = sum(seconds), self.began + (self.seconds or math.inf) - now
        count = fitting(left * _MARGIN, per_sample, most=most)
        if not count:
            fewest = min(_FEWEST, most)
            what = f"{fewest} samples take about {fewest * per_sample:.0f} s, but only {max(0.0, left):.0f} s are left"
            needed = now - self.began + fewest * per_sample / _MARGIN
            raise InputFault(what, where="--budget", cure=self._cure(needed))
        return count

    def too_slow(self, now: float) -> InputFault:
        """Return the fault for a pilot that exceeded its time."""
        fewest, spent = _FEWEST * self.strategies, now - self.began
        if not self.finished:
            what = f"no completion was finished in {spent:.0f} s, but a decision needs at least {fewest}"
            return InputFault(what, where="--budget", cure=self._cure(0.0))
        seconds = (now - self._since) / self.finished * fewest
        what = f"{self.finished} completions took {now - self._since:.0f} s; a decision needs {fewest}, which take"
        # The pilot comes first.
        whole = self._since - self.began + seconds * (1 + PILOT / _FEWEST) / _MARGIN
        return InputFault(f"{what} about {seconds / 60:.0f} min", where="--budget", cure=self._cure(whole))

    def unfinished(self, now: float) -> InputFault:
        """Return the fault for a run that exceeded its time."""
        what = f"{self.finished} of {self._total} completions were finished in {(now - self.began) / 60:.1f} min"
        return InputFault(what, where="--budget", cure="run the same command again; it does only what is missing")

    def _cure(self, needed: float) -> str:
        """Return the advice for a command that needs `needed` seconds; 0 if unknown."""
        longer = f"--budget {math.ceil(needed / 60 + 0.5)}m" if needed else "a much longer --budget"
        return f"give {longer}{', a smaller model, or --generator none' * self.asks_model}"


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The stored number of samples for a budget. The same command then draws the same samples again."""

    home: Home
    key: tuple[str, ...]

    def count(self) -> int | None:
        """Return the stored number of samples; None if there is no valid one."""
        try:
            text = self._file.read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
        return int(text) if text.isdigit() and int(text) in range(1, MOST + 1) else None

    def keep(self, count: int) -> None:
        """Store the number of samples."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._file, str(count))

    @property
    def _file(self) -> Path:
        return self.home.cache / "decide" / f"{sha256(json.dumps(self.key))[:16]}.txt"
