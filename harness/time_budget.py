"""Plan `ctxbench decide --budget`: how many samples fit in a time, and what to say if it is too short."""

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
"""Most samples with a time budget."""
_FEWEST = 20
_SIZES = (*range(_FEWEST, 100, 10), *range(100, 300, 25), *range(300, MOST + 1, 50))
"""Numbers of samples. They are few, so that a budget gives the same samples on the next commit."""
WARM, PILOT = 2, 16
"""Numbers of samples that warm up the model and the engines, and that are timed."""
_MARGIN = 0.85
"""Share of the time left after the pilot that is planned, as samples vary in their time."""
_PILOT_SHARE, _RUN_SHARE = 0.6, 1.2
"""Shares of the budget after which the pilot, and the run, are ended."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def read_time(text: str) -> float | None:
    """Return the seconds of a time such as ``90s``, ``10m`` or ``1.5h``; None for any other text."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", text.strip())
    return float(match[1]) * _UNITS[match[2]] or None if match else None


def fitting(seconds: float, per_sample: float, *, most: int) -> int:
    """Return how many samples fit in some seconds: `most`, or a smaller planned size; 0 if not even the fewest.

    Args:
        seconds: seconds for all samples.
        per_sample: seconds per sample, for all strategies together.
        most: number of samples available.
    """
    sizes = [size for size in _SIZES if size < most and size * per_sample <= seconds]
    return most if most * per_sample <= seconds else max(sizes, default=0)


@dataclass(slots=True, kw_only=True)
class TimeBudget:
    """The time of a command, and the completions that its strategies have finished."""

    seconds: float | None
    """None: without a limit."""
    began: float
    """Start of the command, as all times here in seconds of `time.monotonic`."""
    strategies: int
    finished: int = 0
    """Completions since `start`, of all strategies."""
    _since: float = 0.0
    _total: int = 0

    @property
    def pilot_end(self) -> float:
        """The latest end of the pilot."""
        return self.began + _PILOT_SHARE * (self.seconds or math.inf)

    @property
    def end(self) -> float:
        """The latest end of the run."""
        return self.began + _RUN_SHARE * (self.seconds or math.inf)

    def start(self, now: float, samples: int) -> None:
        """Count anew, for a part of the work with this number of samples."""
        self.finished, self._since, self._total = 0, now, samples * self.strategies

    def counting(self, progress: Progress) -> Progress:
        """Return the same progress, which also counts what is finished."""

        @contextlib.contextmanager
        def counted(label: str, total: int) -> Iterator[Tick]:
            with progress(label, total) as tick:

                def count(step: int, missing: int = 0) -> None:
                    self.finished += step - missing
                    tick(step, missing)

                yield count

        return counted

    def planned(self, now: float, seconds: Sequence[float], *, most: int) -> int:
        """Return the number of samples for the rest of the time.

        Args:
            now: the end of the pilot.
            seconds: each strategy's seconds per sample.
            most: number of samples available.

        Raises:
            InputFault: if not even the smallest number fits.
        """
        per_sample, left = sum(seconds), self.began + (self.seconds or math.inf) - now
        count = fitting(left * _MARGIN, per_sample, most=most)
        if not count:
            fewest = min(_FEWEST, most)
            what = f"{fewest} samples take about {fewest * per_sample:.0f} s, and {max(0.0, left):.0f} s are left"
            needed = now - self.began + fewest * per_sample / _MARGIN
            raise InputFault(what, where="--budget", cure=_cure(needed))
        return count

    def too_slow(self, now: float) -> InputFault:
        """Return the fault of a pilot that has not ended in time."""
        fewest, spent = _FEWEST * self.strategies, now - self.began
        if not self.finished:
            what = f"no completion was finished in {spent:.0f} s, and {fewest} are the fewest for an answer"
            return InputFault(what, where="--budget", cure=_cure(0.0))
        seconds = (now - self._since) / self.finished * fewest
        what = f"{self.finished} completions took {now - self._since:.0f} s; an answer needs {fewest}, in about"
        # The pilot comes first.
        whole = self._since - self.began + seconds * (1 + PILOT / _FEWEST) / _MARGIN
        return InputFault(f"{what} {seconds / 60:.0f} min", where="--budget", cure=_cure(whole))

    def unfinished(self, now: float) -> InputFault:
        """Return the fault of a run that has not ended in time."""
        what = f"{self.finished} of {self._total} completions were finished in {(now - self.began) / 60:.1f} min"
        return InputFault(what, where="--budget", cure="run the same command again: it does only what is missing")


def _cure(needed: float) -> str:
    """Return what to type if a command takes `needed` seconds; 0 if that is unknown."""
    longer = f"--budget {math.ceil(needed / 60 + 0.5)}m" if needed else "a much longer --budget"
    return f"give {longer}, a smaller model, or --generator none"


@dataclass(frozen=True, slots=True)
class StoredPlan:
    """The number of samples chosen for a budget, stored so that the same command draws the same samples."""

    home: Home
    key: tuple[str, ...]

    def count(self) -> int | None:
        """Return the stored number; None without one."""
        try:
            text = self._file.read_text(encoding="ascii")
        except (OSError, ValueError):
            return None
        return int(text) if text.isdigit() and int(text) in range(1, MOST + 1) else None

    def keep(self, count: int) -> None:
        """Store the number."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(self._file, str(count))

    @property
    def _file(self) -> Path:
        return self.home.cache / "decide" / f"{sha256(json.dumps(self.key))[:16]}.txt"
