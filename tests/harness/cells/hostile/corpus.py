"""Run all cases in one world as the current user, and print their outcomes as JSON."""

import contextlib
import json
import os
import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from ctxbench.bench.types import Kind, Query
from ctxbench.harness.cells import open_cells
from ctxbench.harness.cells.pool import ForkedCells
from ctxbench.harness.cells.protocol import StrategyBounds
from ctxbench.strategies.api import Prompt
from ctxbench.strategies.tiny import query_for, view_for
from tests.harness.cells.hostile.case import ACTS, CHANNELS, Channel
from tests.helpers.models import Model

NOTE = "zqQj"
SPY_SAMPLES = 4
_SECONDS = 60.0


class World:
    """The cells of one corpus run, and the state that must not change."""

    def __init__(self, root: Path, cells: ForkedCells) -> None:
        self._file, self._home, self._cells = root / "strategies" / "inside.py", root / "home", cells
        self._query = query_for(Kind.LINE)

    def part(self, case: str, part: str, note: str = "", model: Model | None = None) -> str:
        spec = f"{self._file}@hostile(case={case}, part={part}, note='{note}')"
        return self.prompt(spec, model=model).text

    def prompt(self, spec: str, query: Query | None = None, model: Model | None = None) -> Prompt:
        query = query or self._query
        return self._cells.run(spec, query, view_for(query), model or Model(lambda *_: ""))

    def channel(self, case: Channel) -> dict[str, object]:
        """Return what a cell saw before and after another cell left its note."""
        if case.at_once == "look":
            before = self._both(case, "look", None)
            return {"before": before, "after": self._both(case, "look", "leave")}
        before = self.part(case.name, "look")
        if case.at_once:
            return {"before": before, "after": self._both(case, "leave", "look")}
        left = self.part(case.name, "leave", NOTE)
        return {"before": before, "left": left, "after": self.part(case.name, "look")}

    def _both(self, case: Channel, waits: str, inner: str | None) -> str:
        """Run one part and, while it waits, the other. Return what the looking part saw."""
        ready, go = threading.Event(), threading.Event()
        result: dict[str, str] = {}

        def answer(*_: object) -> str:
            ready.set()
            go.wait(_SECONDS)
            return ""

        def work() -> None:
            result[waits] = self.part(case.name, waits, NOTE if waits == "leave" else "", Model(answer))
            ready.set()

        thread = threading.Thread(target=work)
        thread.start()
        ready.wait(_SECONDS)
        if inner is not None:
            result[inner] = self.part(case.name, inner, NOTE if inner == "leave" else "")
        go.set()
        thread.join()
        return result["look"]

    def spied(self) -> list[bool]:
        """Return for a few samples, in order, whether the spy's prompt equals the prompt of ``lc.infile``."""
        stands_for = self.prompt("lc.infile(limit=100)")
        return [self.prompt(f"{self._file}@spy(limit=100)") == stands_for for _ in range(SPY_SAMPLES)]

    def state(self) -> dict[str, object]:
        """Return the state of this process, the server and the home that no strategy may change."""
        pid, server = os.getpid(), self._cells._server().process.pid
        kinds = (resource.RLIMIT_NOFILE, resource.RLIMIT_NPROC, resource.RLIMIT_CPU)
        held = [(self._home / name).stat() for name in ("references.jsonl", ".")]
        return {
            "limits": [resource.prlimit(each, kind) for each in (pid, server) for kind in kinds],
            "affinity": [sorted(os.sched_getaffinity(each)) for each in (pid, server)],
            "priority": [os.getpriority(os.PRIO_PROCESS, each) for each in (pid, server)],
            "home": [(one.st_mode, one.st_uid, one.st_mtime_ns, one.st_size) for one in held],
            "alive": self._cells._server().process.poll() is None,
            "honest": self.prompt("lc.infile(limit=100)").text,
        }


@contextlib.contextmanager
def world(root: Path) -> Iterator[World]:
    with open_cells([root / "home"], 4, limits=StrategyBounds(wait=_SECONDS)) as cells:
        assert isinstance(cells, ForkedCells)
        yield World(root, cells)


def main(root: Path, only: set[str]) -> None:
    report: dict[str, object] = {}
    with world(root) as here:
        report["isolation"] = here._cells.describe()["isolation"]
        report["before"] = here.state()
        for case in CHANNELS:
            if not only or case.name in only:
                report[case.name] = _outcome(lambda case=case: here.channel(case))  # type: ignore[misc]
        for act in ACTS:
            if not only or act.name in only:
                report[act.name] = _outcome(lambda act=act: here.part(act.name, "act"))  # type: ignore[misc]
        report["spied"] = _outcome(here.spied)
        report["after"] = here.state()
    sys.stdout.write(json.dumps(report))


def _outcome(work: object) -> object:
    try:
        return work()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001
        return {"fault": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main(Path(sys.argv[1]), set(sys.argv[2:]))
