"""Engine boxes: the files they contain, the texts they receive for each sample, and the places that are counted."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench.engines import box
from ctxbench.bench.engines.box import (
    blank_out,
    masked_lines,
    tree_of_base,
    tree_of_file,
    tree_of_repository,
    view_lines,
)
from ctxbench.bench.engines.boxes import Engines
from ctxbench.bench.engines.types import EngineLost, EngineUse
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import View, view
from ctxbench.bench.types import Cursor, Kind, Sample
from ctxbench.sandbox.types import Environment, Limits, Report
from tests.helpers.samples import make_sample
from tests.helpers.trees import make_snapshot

PATH = "shop/pay.py"
LINES = [
    "import tax",
    "",
    "def pay(user):",
    "    total = tax.add(levy(1), toll(2))",
    "    return total",
    "def due():",
    "    return duty(3)",
]


class Listener:
    """A back end whose boxes return one fixed answer and record every query text, separately for each box."""

    name = "listener"

    def __init__(self, answer: Sequence[tuple[str, int, int, float]] = ()) -> None:
        self.boxes: list[list[str]] = []
        """The query texts of each box that received a target file."""
        self.trees: list[Mapping[str, str]] = []
        """The files of each of these boxes."""
        self.bases: list[Mapping[str, bytes]] = []
        """The files that each box started with, including unused boxes."""
        self.ended = 0
        self.answer = answer

    def prepare(self, environment: Environment, report: Report) -> str:
        return "d" * 64

    @contextlib.contextmanager
    def converse(self, environment: Environment, *, limits: Limits) -> Iterator[ListenerBox]:
        self.bases.append(environment.tree)
        try:
            yield ListenerBox(self, environment.tree)
        finally:
            self.ended += 1


class ListenerBox:
    def __init__(self, listener: Listener, base: Mapping[str, bytes]) -> None:
        self._listener, self._base = listener, base
        self._texts: list[str] = []

    def begin(self, function: str, arguments: Any) -> None:
        """Do nothing."""

    def ask(self, message: bytes, seconds: float) -> bytes:
        question = json.loads(message)
        told = {"told": ["listener", "1"], "bytes": 0}
        answers = {"base": told, "index": told, "save": "", "search": self._listener.answer}
        if question["call"] == "search":
            self._texts.append(question["text"])
        if question["call"] == "index":
            self._listener.boxes.append(self._texts)
            base = {path: text.decode() for path, text in self._base.items()}
            self._listener.trees.append({**base, **question.get("texts", {})})
        return json.dumps({"answer": answers.get(question["call"])}).encode()


def at(line: int, column: int) -> Sample:
    prefix = "\n".join([*LINES[:line], LINES[line][:column]])
    return make_sample(id=f"L{line}C{column}", path=PATH, cursor=Cursor(line=line, column=column), prefix=prefix)


def function(line: int, end: int) -> Sample:
    prefix, suffix = "".join(f"{row}\n" for row in LINES[:line]), "".join(f"{row}\n" for row in LINES[end:])
    return make_sample(
        id=f"F{line}",
        path=PATH,
        kind=Kind.FUNCTION,
        subkind="untested",
        cursor=Cursor(line=line, column=0),
        prefix=prefix,
        suffix=suffix,
        span=(line - 1, end),
    )


def asked(
    folder: Path, listener: Listener, samples: Sequence[Sample], mode: str = "per-file", *, whole: bool = False
) -> tuple[EngineUse, ...]:
    """Search for the samples in order, with the prefix or, if `whole`, with all that the view shows of the file."""
    snapshot, uses = make_snapshot(folder, {PATH: "\n".join([*LINES, ""])}), []
    spec = f"ripgrep(mode={mode})"
    with Engines(lambda: listener) as engines:  # type: ignore[arg-type,return-value]
        engines.prepare([spec], samples)
        engines.ordered(samples, 1)
        for sample in samples:
            engines.announce(sample)
            with engines.turn(sample, snapshot) as session:
                repo: View = view(snapshot, sample.query(), engines=session)
                for _ in range(2):
                    text = repo.read(PATH) if whole else sample.prefix
                    repo.engine(spec).search(text, before=sample.cursor.line)
                uses += session.uses
    return tuple(uses)


@pytest.mark.parametrize(("mode", "overhanging"), [("per-file", 0), ("shared", 1)])
def test_a_window_that_extends_past_a_boxs_file_is_not_cut(tmp_path: Path, mode: str, overhanging: int) -> None:
    overhangs, behind = (PATH, 2, 22, 2.0), (PATH, 3, 4, 1.0)
    [use] = asked(tmp_path / "a", Listener([overhangs]), [at(3, 12)], mode)
    assert (use.places, use.cut) == (2, 2 * overhanging)
    [use] = asked(tmp_path / "b", Listener([behind]), [at(3, 12)], mode)
    assert (use.places, use.cut) == (0, 2)


def test_a_box_has_seen_no_text_after_its_next_samples_cursor(tmp_path: Path) -> None:
    lines = [at(3, 12), at(3, 24), at(4, 4)]
    for name, order, boxes in (("sorted", lines, 1), ("backwards", lines[::-1], 3)):
        listener = Listener()
        asked(tmp_path / name, listener, order)
        assert len(listener.boxes) == boxes
        told = [text for texts in listener.boxes for text in texts]
        assert told == [sample.prefix for sample in order for _ in range(2)]


def test_the_searches_of_a_sample_have_a_time_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "PATIENCE", box.EngineTimeLimits(sample=0.0))
    with pytest.raises(EngineLost, match="for one sample took more than 0 seconds"):
        asked(tmp_path, Listener(), [at(3, 12)])
    monkeypatch.setattr(box, "PATIENCE", box.EngineTimeLimits(sample=1e-9))
    with pytest.raises(EngineLost, match="for one sample took more than 0 seconds"):
        asked(tmp_path, listener := Listener(), [at(3, 12)])
    assert [len(texts) for texts in listener.boxes] == [1]


def test_each_function_sample_has_its_own_box(tmp_path: Path) -> None:
    """The view of a function sample shows the functions after it, so a strategy may send their bodies."""
    listener = Listener()
    asked(tmp_path, listener, [function(3, 5), function(6, 7), at(6, 4)], whole=True)
    answers = ["levy(1), toll(2)", "duty(3)", "duty(3)"]
    assert len(listener.boxes) == 3
    for texts, answer in zip(listener.boxes, answers, strict=True):
        assert len(texts) == 2 and not any(answer in text for text in texts)


def two_targets(folder: Path) -> tuple[Snapshot, list[Sample]]:
    paths = sorted([PATH, "shop/due.py"])
    snapshot = make_snapshot(folder, {**{path: "\n".join([*LINES, ""]) for path in paths}, "shop/tax.py": "x = 1\n"})
    return snapshot, [replace(at(3, 12), path=path, id=path) for path in paths]


def test_each_target_file_has_its_own_box_beside_a_shared_engine(tmp_path: Path) -> None:
    snapshot, samples = two_targets(tmp_path)
    listener = Listener()
    with Engines(lambda: listener) as engines:  # type: ignore[arg-type,return-value]
        engines.prepare(["ripgrep", "repomap(mode=shared)"], samples)
        for sample in engines.ordered(samples, 1):
            with engines.turn(sample, snapshot) as session:
                session.search("ripgrep", sample.prefix, 3)
    assert [set(base) for base in listener.bases] == [{"shop/tax.py"}] * 2
    assert len(listener.boxes) == 2
    for sample, tree in zip(samples, listener.trees, strict=True):
        assert "levy" not in tree[sample.path]


def test_the_next_box_starts_in_advance_and_ends_if_unused(tmp_path: Path) -> None:
    snapshot, samples = two_targets(tmp_path)
    listener = Listener()
    with Engines(lambda: listener) as engines:  # type: ignore[arg-type,return-value]
        engines.prepare(["ripgrep"], samples)
        sample, _ = engines.ordered(samples, 1)
        with engines.turn(sample, snapshot) as session:
            session.search("ripgrep", sample.prefix, 3)
    deadline = time.monotonic() + 10
    while listener.ended < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert listener.ended == 2 and len(listener.boxes) == 1
    assert [set(base) for base in listener.bases] == [{"shop/tax.py"}] * 2


def test_a_waiting_box_does_not_start_after_the_run_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxbench.bench.engines.boxes._MOST_BOXES", 1)
    paths = [f"shop/{name}.py" for name in "abc"]
    snapshot = make_snapshot(tmp_path, dict.fromkeys(paths, "\n".join([*LINES, ""])) | {"shop/tax.py": "x = 1\n"})
    samples = [replace(at(3, 12), path=path, id=path) for path in paths]
    started, go_on = threading.Event(), threading.Event()

    class Slow(Listener):
        @contextlib.contextmanager
        def converse(self, environment: Environment, *, limits: Limits) -> Iterator[ListenerBox]:
            with super().converse(environment, limits=limits) as talk:
                if len(self.bases) > 1:
                    started.set()
                    assert go_on.wait(10)
                yield talk

    listener = Slow()
    with Engines(lambda: listener) as engines:  # type: ignore[arg-type,return-value]
        engines.prepare(["ripgrep"], samples)
        sample, *_ = engines.ordered(samples, 1)
        with engines.turn(sample, snapshot) as session:
            session.search("ripgrep", sample.prefix, 3)
        assert started.wait(10)
    go_on.set()
    engines._starter.shutdown()
    assert len(listener.bases) == listener.ended == 2


def test_a_box_that_saw_an_import_gets_no_sample_that_masks_it(tmp_path: Path) -> None:
    """Otherwise an engine could pass the line on: the first sample shows the line, the second masks it."""

    def masking(sample: Sample) -> Sample:
        prefix = sample.prefix.replace(LINES[0], "", 1)
        return replace(sample, prefix=prefix, masked=((0, 1),))

    first, *others = at(3, 12), masking(at(3, 24)), masking(at(4, 4))
    listener = Listener()
    asked(tmp_path / "seen before", listener, [first, *others])
    assert [len(texts) for texts in listener.boxes] == [2, 4]
    listener = Listener()
    asked(tmp_path / "masked before", listener, [masking(first), at(3, 24)])
    assert [len(texts) for texts in listener.boxes] == [4]


PAY = [
    "import tax",
    "import cart",
    "",
    "def pay(user):",
    "    one = tax.add(1)",
    "    two = cart.add(2)",
    "    return two",
]
FILES = {
    "shop/pay.py": "\n".join(PAY) + "\n",
    "shop/tax.py": "def add(n):\n    return n\n",
    "tests/test_pay.py": "x = 1\n",
}


def sample(line: int, masked: tuple[int, int]):
    before = PAY[line].partition("= ")[0] + "= "
    rows = ["" if masked[0] <= at < masked[1] else row for at, row in enumerate(PAY[:line])]
    return make_sample(
        id=f"demo/shop/pay.py#L{line}",
        path="shop/pay.py",
        cursor=Cursor(line=line, column=len(before)),
        prefix="\n".join([*rows, before]),
        masked=(masked,),
        hidden=("tests/",),
    )


def test_a_file_tree_ends_at_the_first_cursor_without_masked_lines(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    samples = [sample(4, (0, 1)), sample(5, (1, 2))]
    tree = tree_of_file(snapshot, samples)
    assert tree["shop/pay.py"] == "\n\n\ndef pay(user):\n"
    assert set(tree) == {"shop/pay.py", "shop/tax.py"} and tree["shop/tax.py"] == FILES["shop/tax.py"]
    for one in samples:
        shown = view(snapshot, one.query(), one.masked, one.hidden)
        for path, text in tree.items():
            rows = zip(text.splitlines(), shown.read(path).split("\n"), strict=False)
            assert all(in_tree in ("", in_view) for in_tree, in_view in rows)


def test_a_shared_tree_has_the_whole_file_and_each_view_is_cut(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    later = sample(5, (1, 2))
    assert tree_of_repository(snapshot, [later])["shop/pay.py"] == FILES["shop/pay.py"]
    assert tree_of_base(snapshot, [later]) == {"shop/tax.py": FILES["shop/tax.py"]}
    assert view_lines(snapshot, [later]) == "import tax\n\n\ndef pay(user):\n    one = tax.add(1)\n"


def test_a_different_version_of_the_target_file_is_shown_empty(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, {**FILES, "shop/pay.py": "other = 1\n"})
    assert tree_of_file(snapshot, [sample(4, (0, 1))])["shop/pay.py"] == ""


def test_a_line_masked_by_one_sample_is_blank_in_all_queries(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    samples = [sample(4, (0, 1)), sample(5, (1, 2))]
    lines = masked_lines(snapshot, samples)
    assert lines == {"import tax", "import cart"}
    assert [blank_out(each.prefix, lines).split("\n")[:4] for each in samples] == [["", "", "", PAY[3]]] * 2
