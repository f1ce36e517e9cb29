"""Attacks on the box, defined as data in `cases/`: what they try, and the output that proves containment."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxbench.sandbox.types import Ended

GROUPS = {
    "Using up the machine": "resources",
    "Taking what all boxes share": "pools",
    "Processes and signals": "processes",
    "The network": "network",
    "The kernel": "kernel",
    "Reading what is not the job's": "leaks",
    "Files that hurt whoever removes them": "files",
    "Notes for the next job": "notes",
    "The channel to the pool": "channel",
    "Results": "results",
}
"""The groups of `CASES`, by title; each is a file."""

WORDS = {
    "refused": "EPERM|EACCES|ENOSYS",
    "no-root": "EPERM|EACCES|EINVAL",
    "absent": "ENOENT|EACCES|EPERM|EROFS|ENOTDIR|ENXIO|ENODEV",
    "readonly": "EROFS|EACCES|EPERM",
    "unreachable": "ENETUNREACH|EHOSTUNREACH|ENETDOWN|ECONNREFUSED|EADDRNOTAVAIL|EPERM|EACCES",
    "no-family": "EPERM|EACCES|EAFNOSUPPORT|EPROTONOSUPPORT|ESOCKTNOSUPPORT|EINVAL",
}
"""Name in angle brackets in `Case.seen` -> possible results of an action."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One attack, run as a job in a box that other jobs use before and after it."""

    name: str
    tries: str
    """What the attack tries to do, for the list in the documentation."""
    code: str
    """A program; ``@NAME@`` stands for a secret or an address of this run."""
    seen: str
    """The complete output. Names such as ``<refused>`` are keys of `WORDS`; ``<1..9>`` is a number in that range."""
    ended: tuple[Ended, ...] = (Ended.EXITED,)
    call: bool = False
    """Whether a trusted function runs the code in its own process, instead of as a program."""
    result: object = None
    """Required result of a call."""
    exit_code: int | None = None
    """Required exit code; None accepts any."""
    truncated: bool = False
    out_of_memory: bool | None = None
    """Required value; None accepts both."""
    seconds: float = 20.0
    then: str = ""
    """Program of a second job, which looks for traces of the first."""
    then_seen: str = ""


def lines(text: str) -> str:
    """Return text without the blanks around it and around its lines."""
    return "\n".join(line.strip() for line in text.strip().splitlines())


def matches(pattern: str, text: str) -> bool:
    whole, ranges = "", []
    for index, part in enumerate(re.split(r"<([\w.-]+)>", lines(pattern))):
        if not index % 2:
            whole += re.escape(part)
        elif part in WORDS:
            whole += f"(?:{WORDS[part]})"
        else:
            low, high = part.split("..")
            ranges.append((int(low), int(high)))
            whole += r"(\d+)"
    found = re.fullmatch(whole, lines(text))
    if not found:
        return False
    return all(low <= int(number) <= high for number, (low, high) in zip(found.groups(), ranges, strict=True))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "cases" / f"{name}.toml").read_text(encoding="utf-8"))


_PIECES: dict[str, str] = _read("pieces")


def _program(text: str) -> str:
    return re.sub(r"^@([A-Z_]+)@\n", lambda found: _PIECES[found[1]], text, flags=re.MULTILINE)


def _case(entry: dict[str, Any]) -> Case:
    entry["code"], entry["then"] = _program(entry["code"]), _program(entry.get("then", ""))
    entry["ended"] = tuple(Ended[name] for name in entry.get("ended", ["EXITED"]))
    entry["seen"] = "\n".join([entry["seen"].strip()] * entry.pop("seen_times", 1))
    return Case(**entry)


CASES = {title: tuple(_case(entry) for entry in _read(name)["case"]) for title, name in GROUPS.items()}
