"""Sample sets on disk: equal bytes, checks on loading, and no lost data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.errors import CtxbenchError, InputFault, UnknownName
from ctxbench.bench.home import Home
from ctxbench.bench.samples import SampleSet
from ctxbench.bench.types import Cursor, Reference, Sample, Use
from tests.helpers.samples import make_reference, make_sample
from tests.helpers.trees import make_snapshot

ABOUT: dict[str, Any] = {"kind": "line", "repositories": {"demo": {"language": "python", "checkout": None}}}


def pair(number: int, **changes: Any) -> tuple[Sample, Reference]:
    name = f"demo/a.py#L{number}C0"
    return make_sample(id=name, **changes), make_reference(id=name)


def saved(home: Home, count: int = 2, *, name: str = "tiny", force: bool = False) -> SampleSet:
    pairs = [pair(number) for number in range(count)]
    return sets.save(home, name, [a for a, _ in pairs], [b for _, b in pairs], ABOUT, force=force)


def test_a_saved_set_is_loaded_unchanged(home: Home) -> None:
    rich, reference = pair(
        7,
        masked=((0, 2), (4, 5)),
        prefix="é\u2028𝄞\n",
        suffix="rest\n",
        uses=(Use(name="Cart", module="shop.cart", kind="class"),),
        cursor=Cursor(line=9, column=2),
        context_start=3,
    )
    reference = Reference(id=reference.id, target="x = 1", original_import="import a\nimport b", tests=("t",))
    made = sets.save(home, "rich", [rich], [reference], ABOUT)
    assert made.samples == (rich,)
    assert made.references == {rich.id: reference}
    assert made == sets.load(home, "rich")
    assert sets.names(home) == ("rich",)


def test_equal_sets_have_equal_bytes_and_digests(home: Home, tmp_path: Path) -> None:
    other = Home(tmp_path / "other")
    assert saved(home).digest == saved(other).digest
    for file in ("samples.jsonl", "references.jsonl", "manifest.json"):
        assert (home.samples / "tiny" / file).read_bytes() == (other.samples / "tiny" / file).read_bytes()
    assert saved(home, 3, name="more").digest != saved(other).digest


def test_a_set_is_replaced_only_with_force(home: Home) -> None:
    first = saved(home)
    assert saved(home) == first, "an equal set is left alone"
    with pytest.raises(InputFault, match="--force"):
        saved(home, 3)
    assert sets.load(home, "tiny") == first
    assert len(saved(home, 3, force=True).samples) == 3
    assert [entry.name for entry in home.samples.iterdir()] == ["tiny"], "nothing is left beside it"


def test_a_failed_write_keeps_the_old_set(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    first = saved(home)

    def full(path: Path, data: str | bytes) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(sets, "write_atomic", full)
    with pytest.raises(CtxbenchError, match="the disk is full"):
        saved(home, 3, force=True)
    assert sets.load(home, "tiny") == first
    assert [entry.name for entry in home.samples.iterdir()] == ["tiny"]


def edit(file: str, change: Callable[[list[str]], list[str]]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        lines = (folder / file).read_text().split("\n")
        (folder / file).write_text("\n".join(change(lines)))

    return apply


def field(file: str, **changes: Any) -> Callable[[Path], None]:
    """Change fields of the first record. None removes a field."""

    def change(lines: list[str]) -> list[str]:
        record = {**json.loads(lines[0]), **changes}
        return [json.dumps({key: value for key, value in record.items() if value is not None}), *lines[1:]]

    return edit(file, change)


def manifest(**changes: Any) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        record = json.loads((folder / "manifest.json").read_text()) | changes
        (folder / "manifest.json").write_text(json.dumps(record))

    return apply


S, R = "samples.jsonl", "references.jsonl"
BROKEN = {
    "cut off": (edit(S, lambda lines: [lines[0], lines[1][:40]]), ["samples.jsonl:2", "cut off"]),
    "not an object": (edit(S, lambda lines: ["[1]"]), ["samples.jsonl:1", "not a json object"]),
    "not UTF-8": (lambda folder: (folder / S).write_bytes(b"\xff\n"), ["samples.jsonl", "utf-8"]),
    "file missing": (lambda folder: (folder / R).unlink(), ["references.jsonl", "no such file"]),
    "field missing": (field(S, prefix=None), ["samples.jsonl:1", "field prefix", "required"]),
    "wrong type": (field(S, cursor={"line": "3", "column": 0}), ["samples.jsonl:1", "field cursor.line", "integer"]),
    "wrong kind": (field(S, kind="word"), ["samples.jsonl:1", "field kind"]),
    "wrong language": (field(S, language="cobol"), ["field language"]),
    "unknown field": (field(S, answer="x"), ["samples.jsonl:1", "field answer"]),
    "path outside": (field(S, path="../../etc/passwd"), ["field path", "inside the repository"]),
    "absolute path": (field(S, path="/etc/passwd"), ["field path"]),
    "negative cursor": (field(S, cursor={"line": -1, "column": 0}), ["field cursor"]),
    "backward span": (field(S, masked=[[3, 3]]), ["field masked"]),
    "reference without target": (field(R, target=None), ["references.jsonl:1", "field target"]),
    "id twice": (edit(S, lambda lines: [lines[0], lines[0]]), ["samples.jsonl:2", "also on line 1"]),
    "reference missing": (edit(R, lambda lines: lines[:1]), ["samples.jsonl:2", "no reference"]),
    "reference too many": (edit(S, lambda lines: lines[:1]), ["references.jsonl", "no sample"]),
    "changed by hand": (field(S, prefix="changed"), ["samples.jsonl", "sha256", "--force"]),
    "answer changed": (field(R, target="changed"), ["references.jsonl", "sha256"]),
    "newer format": (manifest(format=99), ["manifest.json", "format 99", "upgrade"]),
    "no format": (manifest(format="x"), ["manifest.json", "format"]),
    "no digests": (manifest(files={}), ["manifest.json", "files"]),
    "no repositories": (manifest(repositories=None), ["manifest.json", "repositories"]),
    "a repository is a number": (manifest(repositories={"shop": 3}), ["manifest.json", "repositories.shop"]),
    "no language": (manifest(repositories={"shop": {}}), ["manifest.json", "repositories.shop.language"]),
    "no snapshot": (
        manifest(repositories={"shop": {"language": "python", "checkout": "shop/1"}}),
        ["manifest.json", "repositories.shop.snapshot"],
    ),
    "manifest is no JSON": (
        edit("manifest.json", lambda lines: lines[:3]),
        ["manifest.json", "not valid json", "--force"],
    ),
    "manifest is a list": (lambda folder: (folder / "manifest.json").write_text("[]"), ["manifest.json", "format"]),
}


@pytest.mark.parametrize(("spoil", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_sets_are_refused(home: Home, spoil: Callable[[Path], object], words: list[str]) -> None:
    saved(home)
    spoil(home.samples / "tiny")
    with pytest.raises(InputFault) as caught:
        sets.load(home, "tiny")
    for word in words:
        assert word in str(caught.value).lower()


def test_leftovers_of_a_killed_build_are_not_a_set(home: Home) -> None:
    saved(home)
    (home.samples / "tiny").rename(home.samples / ".tiny.x1.part")
    assert sets.names(home) == ()


def test_a_missing_set_suggests_the_nearest_name(home: Home) -> None:
    saved(home)
    with pytest.raises(UnknownName, match="tiny.*ctxbench samples list"):
        sets.load(home, "tinny")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 200])
def test_set_names_cannot_leave_the_home(home: Home, name: str) -> None:
    with pytest.raises(InputFault, match="letters, digits"):
        sets.load(home, name)


class TestSnapshots:
    def saved(self, home: Home, **entry: Any) -> SampleSet:
        sample, reference = pair(0)
        about = {"kind": "line", "repositories": {"demo": {"language": "python", **entry}}}
        return sets.save(home, "tiny", [sample], [reference], about)

    def test_snapshots_are_read_and_checked(self, home: Home) -> None:
        read = make_snapshot(home.repos / "demo" / "1", {"a.py": "x = 1\n"})
        made = self.saved(home, checkout="demo/1", snapshot=read.digest)
        assert sets.snapshots(home, made) == {"demo": read}

    def test_a_missing_snapshot_is_reported_with_the_fetch_command(self, home: Home) -> None:
        made = self.saved(home, checkout="demo/1", snapshot="0")
        with pytest.raises(InputFault, match="not been fetched.*ctxbench repo fetch demo"):
            sets.snapshots(home, made)

    def test_a_changed_snapshot_is_refused(self, home: Home) -> None:
        make_snapshot(home.repos / "demo" / "2", {"a.py": "x = 1\n"})
        made = self.saved(home, checkout="demo/2", snapshot="0")
        with pytest.raises(InputFault, match="changed after.*ctxbench repo fetch demo"):
            sets.snapshots(home, made)

    def test_sets_with_stored_prompts_have_no_snapshots(self, home: Home) -> None:
        assert sets.snapshots(home, self.saved(home, checkout=None)) == {}
