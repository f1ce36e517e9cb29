"""Dates of samples: the day on which a line was written or, without a history, the release was published."""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Any

from ctxbench.bench.errors import InputFault

if TYPE_CHECKING:
    from ctxbench.bench.samples import SampleSet

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])", re.ASCII)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def read_date(text: str) -> date:
    """Parse a day, ``YYYY-MM-DD``.

    Raises:
        ValueError: if the text is not such a day. The message quotes it.
    """
    try:
        # `fromisoformat` alone also reads 20240601 and 2024-W22-6.
        return date.fromisoformat(text if _DAY.fullmatch(text) else "")
    except ValueError:
        raise ValueError(f"{text!r} is not a date") from None


def last_day(text: str) -> date:
    """Parse a day, ``YYYY-MM-DD``, or return the last day of a month, ``YYYY-MM``.

    Raises:
        ValueError: if the text is neither. The message quotes it.
    """
    month = _MONTH.fullmatch(text)
    if month is None or month[1] == "0000":
        return read_date(text)
    year, number = int(month[1]), int(month[2])
    return date(year, number, calendar.monthrange(year, number)[1])


def dates_of(sample_set: SampleSet) -> dict[str, date]:
    """Return the UTC day when each sample's code was written or released, by sample id; unknown days are left out.

    Raises:
        InputFault: if the set's manifest has an invalid date.
    """
    repositories = sample_set.manifest["repositories"]
    released = {name: _released(name, entry, sample_set) for name, entry in repositories.items()}
    days = ((sample.id, sample.dated or released.get(sample.repo)) for sample in sample_set.samples)
    return {sample: day for sample, day in days if day is not None}


def _released(name: str, entry: Mapping[str, Any], sample_set: SampleSet) -> date | None:
    # Imported here, since `manifest` imports this module.
    from ctxbench.bench import standard  # noqa: PLC0415
    from ctxbench.bench.repositories import manifest  # noqa: PLC0415

    if "released" not in entry:
        # An imported set does not name its repositories' versions, but its digest may identify a shipped set.
        if name not in manifest.builtin_names():
            return None
        is_shipped = any(sample_set.digest in standard.load(set_name).digests.values() for set_name in standard.names())
        return manifest.load(name).released if is_shipped else None
    try:
        return read_date(str(entry["released"]))
    except ValueError as error:
        raise InputFault(
            f"field repositories.{name}.released: {error}",
            where=f"sample set {sample_set.name}",
            cure='write a day such as "2024-06-01", or build the set again with --force',
        ) from None
