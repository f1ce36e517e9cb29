"""True numbers that would mislead: what the leaderboard shows, and says, where runs are not quite alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli import run_cli
from tests.independent.inserting import Done, Planned, Rows

PLANNED = [Planned(id=f"s{place:02}", repo=f"r{place % 6}") for place in range(12)]
IDS = [one.id for one in PLANNED]


class Shelf:
    """A database to be filled and then looked at."""

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self.rows = Rows(path)
        self.rows.samples(PLANNED)

    def run(self, id_: str, values: dict[str, float], **run: Any) -> None:
        """Store a run with these edit similarities, 0 to 1."""
        done = {sample: Done(scores={("ctxbench", "es"): [value]}) for sample, value in values.items()}
        self.rows.run(id_, IDS, done, **run)

    def shown(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the board's records."""
        return json.loads(self._board("json", *arguments))  # type: ignore[no-any-return]

    def said(self, *arguments: str) -> str:
        """Return the board as text, on one line."""
        return " ".join(self._board("table", *arguments).split())

    def _board(self, form: str, *arguments: str) -> str:
        self.rows.keep()
        found = run_cli("leaderboard", "--db", self.url, "--format", form, *arguments)
        assert found.code == 0, found
        return found.out


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    """Return an empty database over twelve samples of six repositories."""
    made = Shelf(tmp_path / "results.db")
    yield made
    made.rows.close()


@pytest.mark.parametrize(("first", "second"), [("aaa", "bbb"), ("bbb", "aaa")])
def test_of_a_strategy_that_was_edited_the_newest_run_is_shown_whatever_the_ids(
    shelf: Shelf, first: str, second: str
) -> None:
    shelf.run(first, dict.fromkeys(IDS, 0.9), strategy_version="before", begun=[10.0, 11.0])
    shelf.run(second, dict.fromkeys(IDS, 0.2), strategy_version="after", begun=[20.0])
    [row] = shelf.shown()
    assert (row["run"], row["es"]["mean"]) == (second, 20.0)
    assert "1 run is not shown" in shelf.said()
