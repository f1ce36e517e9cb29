"""Packages of results: honest ones are re-derived in another home; tampered ones are refused or reported."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ctxbench.bench import samples as sets
from ctxbench.bench.concurrency import silent
from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256
from ctxbench.bench.home import Home
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.generators.incontext import VERSION
from ctxbench.harness.generators.scripted import Scripted
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from ctxbench.harness.store.store import open_reader
from ctxbench.harness.store.work import run_works
from ctxbench.harness.submissions import format as files
from ctxbench.harness.submissions import records as form
from ctxbench.harness.submissions.records import PackageVerification
from ctxbench.harness.submissions.stored import packed, public
from ctxbench.harness.submissions.verify import Verifier
from tests.helpers.cells import open_inline
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.functions import FakeJudge, make_function_set
from tests.helpers.mining import local_manifest
from tests.helpers.sandboxes import real
from tests.helpers.sets import make_set

MINE = '''
from ctxbench import Context, Generate, Query, Repository, Snippet, strategy
from ctxbench.bench.types import Kind
from ctxbench.strategies.api import Prompt, text_block


@strategy("mine")
def mine(query: Query, repo: Repository, generate: Generate, *, top: int = 1) -> Context:
    """Draft, then show what is like the draft."""
    draft = generate(Prompt(blocks=(text_block(query.prefix[-80:]),)))
    hits = repo.grep("apply_tax", top=top)
    return Context(snippets=tuple(Snippet(path=hit.place.path, text=f"{hit.text}  # {draft}") for hit in hits))


@strategy("own", kinds=(Kind.FUNCTION,))
def own(query: Query, repo: Repository, generate: Generate) -> Prompt:
    """Draft, then show the file."""
    draft = generate(Prompt(blocks=(text_block(query.prefix[-80:]),)))
    return Prompt(blocks=(text_block(f"# {draft}\\n{query.prefix}"),))
'''
WORDS = {"authors": ("A. Author",), "license": "CC-BY-4.0"}


@pytest.fixture(autouse=True)
def _inline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "cell" not in request.node.name:
        for module in ("run.resources", "submissions.stored", "submissions.verify"):
            monkeypatch.setattr(f"ctxbench.harness.{module}.open_cells", open_inline)


@dataclass(frozen=True)
class Made:
    """A package, and another home that has the same sample set."""

    package: Path
    home: Home
    judge: FakeJudge | None

    def verify(
        self, folder: Path | None = None, *, whole: bool = True, sandbox: str | None = None
    ) -> PackageVerification:
        submission = files.read(folder or self.package)
        from ctxbench.harness.run.merging import of_digest

        sample_set = of_digest(self.home, submission.manifest.set.digest, "")
        assert sample_set is not None
        parts = {} if self.judge is None else {"judges": self.judge.open}
        return Verifier(self.home, submission, sample_set, whole, sandbox, 2, silent, parts).verify()


def make(tmp_path: Path, kind: str = "line", strategy: str = "mine", generator: str = "model", n: int = 1) -> Made:
    """Run a strategy in one home, pack the run, and build the same sample set in another home."""
    first, second = Home(tmp_path / "first"), Home(tmp_path / "second")
    sets = [(make_set if kind == "line" else make_function_set)(home) for home in (first, second)]
    source = tmp_path / "strategies" / "mine.py"
    source.parent.mkdir(exist_ok=True)
    source.write_text(MINE)
    judge = FakeJudge(sets[0]) if kind == "function" else None
    model = Scripted(lambda request: f"apply_tax(cart_{len(request.prompt.text) % 3}, rate)", version="7")
    parts: dict[str, Any] = {} if generator == "incontext" else {"resolve": lambda _: model}
    spec = f"{source}@{strategy}" if strategy in ("mine", "own") else strategy
    with open_store(first.database) as store:
        summaries = run(
            first,
            store,
            sets[0],
            strategies=[spec],
            generator="incontext" if generator == "incontext" else "scripted(text=x)",
            choices=RunOptions(n=n, workers=2, measure=frozenset()),
            **parts,
            **({"judges": judge.open} if judge else {}),
        )
        assert not summaries[0].missing, summaries
        submission = packed(store, run_works(store, [summaries[0].run]), sets[0], **WORDS)
        again = packed(store, run_works(store, [summaries[0].run]), sets[0], **WORDS)
    assert submission == again
    files.write(tmp_path / "package", submission)
    return Made(package=tmp_path / "package", home=second, judge=judge)


def states(verification: PackageVerification) -> dict[str, str]:
    """Return part -> state of its check, with `!` if it differs."""
    return {part.name: str(part.state) + "!" * bool(part.differing) for part in verification.parts}


DERIVED = dict.fromkeys(("samples", "strategy", "prompts", "completions", "scores", "means"), "re-derived")


@pytest.mark.parametrize(
    ("kind", "strategy", "generator", "n", "expected"),
    [
        ("line", "mine", "model", 1, DERIVED | {"answers": "trusted"}),
        ("line", "lc.repocoder", "model", 1, DERIVED | {"answers": "trusted"}),
        ("line", "gold", "model", 1, DERIVED | {"answers": "trusted"}),
        ("function", "own", "model", 2, DERIVED | {"answers": "trusted", "verdicts": "re-derived"}),
        ("function", "icl.infile", "model", 1, DERIVED | {"answers": "trusted", "verdicts": "re-derived"}),
    ],
)
def test_an_honest_package_is_re_derived_in_another_home(
    tmp_path: Path, kind: str, strategy: str, generator: str, n: int, expected: dict[str, str]
) -> None:
    made = make(tmp_path, kind, strategy, generator, n)
    verification = made.verify()
    assert verification.equal, verification
    assert states(verification) == expected | {"description": "trusted"}
    assert all(part.checked == part.of for part in verification.parts if part.state != "trusted"), verification


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("run.resources", "submissions.stored", "submissions.verify"):
            patch.setattr(f"ctxbench.harness.{module}.open_cells", open_inline)
        return {
            kind: make(tmp_path_factory.mktemp(kind), kind, strategy)
            for kind, strategy in (("line", "mine"), ("function", "own"))
        }


def manifest(**changes: Any) -> Callable[[form.Submission], form.Submission]:
    """Change fields of the manifest; ``set__limit`` means ``limit`` of ``set``."""

    def tampered(submission: form.Submission) -> form.Submission:
        new = submission.manifest
        for name, value in changes.items():
            outer, _, inner = name.partition("__")
            new = replace(new, **{outer: replace(getattr(new, outer), **{inner: value}) if inner else value})
        return replace(submission, manifest=new)

    return tampered


def record(part: str, place: int = 0, **changes: Any) -> Callable[[form.Submission], form.Submission]:
    """Change fields of a record. A function as a value receives the old value."""

    def tampered(submission: form.Submission) -> form.Submission:
        lines = list(getattr(submission, part))
        values = {name: new(getattr(lines[place], name)) if callable(new) else new for name, new in changes.items()}
        lines[place] = replace(lines[place], **values)
        return replace(submission, **{part: tuple(lines)})

    return tampered


def both(*changes: Callable[[form.Submission], form.Submission]) -> Callable[[form.Submission], form.Submission]:
    return lambda submission: functools.reduce(lambda whole, change: change(whole), changes, submission)


def source(new: str, *, version: bool) -> Callable[[form.Submission], form.Submission]:
    """Replace the source in the package. If `version`, change its version to match."""

    def tampered(submission: form.Submission) -> form.Submission:
        from ctxbench.strategies.sources import digest

        changed = replace(submission, sources={"mine.py": new})
        own = digest({Path("mine.py"): new.encode()})
        return manifest(strategy__version=own)(changed) if version else changed

    return tampered


def first(**changes: Any) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    return lambda items: (replace(items[0], **changes), *items[1:])


OTHER = "f" * 64
FORGED = record("scores", verdict="PASSED", scores=lambda old: {**old, "ctxbench": {**old["ctxbench"], "pass": 1.0}})
TRUSTED = {"prompts": "trusted", "scores": "rescored only"}
Change = Callable[[form.Submission], form.Submission]


def differs(*parts: str) -> dict[str, str]:
    return dict.fromkeys(parts, "re-derived!")


LINES: dict[str, tuple[Change, dict[str, str]]] = {
    "another limit": (manifest(set__limit=8), differs("samples")),
    "another protocol": (manifest(set__protocol="projbench"), differs("samples")),
    "another title": (manifest(title="<b>best</b>", authors=("B",)), {"description": "trusted"}),
    "other costs": (manifest(cost__tokens_in=1, cost__price=0.0), {"description": "trusted"}),
    "a standard set's name": (manifest(set__name="ctxbench-2-lite"), differs("samples")),
    "a smaller limit": (manifest(set__limit=3), differs("samples")),
    "another day": (manifest(set__after="2030-01-01"), differs("samples")),
    "another kind": (manifest(set__kind="function"), differs("samples")),
    "a sample's level": (record("samples", level="next-line"), differs("samples")),
    "a sample's repository": (record("samples", repo="other"), differs("samples")),
    "a sample's day": (record("samples", day="2020-01-01"), differs("samples")),
    "a sample's language": (record("samples", language="java"), differs("samples")),
    "a strategy's version": (
        manifest(strategy__version="0" * 12),
        {"strategy": "re-derived!", "prompts": "trusted", "scores": "rescored only"},
    ),
    "a strategy's parameter": (manifest(strategy__spec="mine.py@mine(top=2)"), differs("prompts")),
    "another strategy": (manifest(strategy__spec="mine.py@none"), TRUSTED | differs("strategy")),
    "a source": (source(MINE + "\n", version=False), TRUSTED | differs("strategy")),
    "a source and its version": (
        source(MINE.replace('# {draft}")', '# seen")'), version=True),
        {"strategy": "re-derived", "prompts": "re-derived!"},
    ),
    "a built-in name": (
        both(
            manifest(strategy=form.StrategyPart(spec="lc.infile", version="0" * 12, source="built-in")),
            lambda s: replace(s, sources={}),
        ),
        TRUSTED | differs("strategy"),
    ),
    "a package that is not here": (
        both(
            manifest(
                strategy=form.StrategyPart(spec="x.y", version="1", source="package", package="no-such-package==1.0")
            ),
            lambda s: replace(s, sources={}),
        ),
        TRUSTED | {"strategy": "trusted"},
    ),
    "a prompt's digest": (record("completions", prompt=OTHER), differs("prompts")),
    "a prompt's tokens": (record("completions", context_tokens=1), differs("prompts")),
    "a prompt's flag": (record("completions", flags=("odd",)), differs("prompts")),
    "a draft's prompt": (record("completions", calls=first(prompt=OTHER)), differs("prompts")),
    "a draft's answer": (record("completions", calls=first(answer="other")), differs("prompts")),
    "a thousand drafts": (record("completions", calls=lambda old: old * 1000), differs("prompts")),
    "a draft less": (record("completions", calls=()), differs("prompts")),
    "a completion": (
        record("completions", completions=first(text="apply_tax(cart_0, 1)")),
        {"scores": "re-derived!", "means": "re-derived"},
    ),
    "a completion that is not the answer": (
        record("completions", completions=first(answer="nothing")),
        differs("completions"),
    ),
    "a completion's status": (record("completions", completions=first(status="model-failed")), differs("completions")),
    "a sample's status": (record("completions", status="model-failed"), differs("completions")),
    "a score": (
        record("scores", scores=lambda old: {**old, "ctxbench": {**old["ctxbench"], "es": 1.0}}),
        differs("scores", "means"),
    ),
    "a score without a value": (
        record("scores", scores=lambda old: {**old, "ctxbench": {**old["ctxbench"], "es": None}}),
        differs("scores", "means"),
    ),
    "a score left out": (
        record("scores", scores=lambda old: {**old, "ctxbench": {"em": old["ctxbench"]["em"]}}),
        differs("scores"),
    ),
    "all scores left out": (
        lambda s: replace(s, scores=tuple(replace(line, scores={"own": {"best": 1.0}}) for line in s.scores)),
        differs("scores"),
    ),
    "a mean": (manifest(mean=()), differs("means")),
    "other metrics": (manifest(versions__metrics=OTHER), differs("scores")),
    "another tokenizer": (manifest(versions__tokenizer="p50k_base"), TRUSTED | {"strategy": "trusted"}),
    "summaries of a model": (manifest(model__summaries=True), TRUSTED | {"strategy": "trusted"}),
    "a profile of its own": (record("scores", scores=lambda old: {**old, "own": {"best": 1.0}}), differs("scores")),
    "more tokens": (manifest(sampling__max_tokens=4096), differs("prompts")),
    "the copy model's name": (manifest(model=form.ModelPart(spec="incontext", version="9")), {"answers": "trusted"}),
    "a coder of the copy model's bits": (
        manifest(model=form.ModelPart(spec="incontext", version=VERSION), versions__coder="zz 1"),
        differs("scores"),
    ),
}
FUNCTIONS: dict[str, tuple[Change, dict[str, str]]] = {
    "a forged verdict": (
        FORGED,
        differs("verdicts", "scores"),
    ),
    "a verdict left out": (record("scores", verdict=None), differs("verdicts")),
    "a verdict, without the strategy": (
        both(FORGED, manifest(model__summaries=True)),
        {"verdicts": "re-derived!", "prompts": "trusted"},
    ),
    "a function's text": (
        record("completions", completions=first(text="def times_2(amount):\n    return amount * 2\n")),
        differs("completions"),
    ),
}


@pytest.mark.parametrize("name", [*LINES, *FUNCTIONS])
def test_verification_reports_the_tampered_parts_of_a_package(
    packages: dict[str, Made], tmp_path: Path, name: str
) -> None:
    change, expected = (LINES | FUNCTIONS)[name]
    made = packages["line" if name in LINES else "function"]
    files.write(tmp_path / "tampered", files.sealed(change(files.read(made.package))))
    verification = made.verify(tmp_path / "tampered")
    found = states(verification)
    assert {part: found[part] for part in expected} == expected, verification
    differs = any(state.endswith("!") for state in expected.values())
    assert verification.equal is not differs, verification


REFUSED = {
    "a huge score": record("scores", scores=lambda old: {**old, "ctxbench": {"es": 1e308}}),
    "a metric": record("scores", scores=lambda old: {**old, "ctxbench": {"own": 1.0}}),
    "a path as a strategy": manifest(strategy__spec="../mine.py@mine"),
    "a path in a strategy": manifest(strategy__spec="mine.py@mine(top=../x)"),
    "an engine in a file": manifest(strategy__spec="mine.py@mine(engine=evil.toml)"),
    "a file as a built-in": manifest(strategy__source="built-in", strategy__file=None, strategy__spec="x.py@evil"),
    "a set in another folder": manifest(set__name="../../etc"),
    "a set that looks like another": manifest(set__name="d\u0435mo"),
    "a strategy that looks like another": manifest(strategy__spec="mine.py@min\u0435"),
    "a model that looks like the built-in one": manifest(model__spec="inc\u043entext"),
    "a server's model that looks like another": manifest(model__spec="openai(model=gpt-\u043e1)"),
    "a coder that looks like the built-in one": manifest(versions__coder=f"inc\u043entext {VERSION}"),
    "the year 0": manifest(date="0000-01-01"),
    "a score for a completion that is not there": record("scores", completion=1),
    "a language": record("samples", language="klingon"),
    "a mark of a line": record("samples", marks=("broken",)),
    "a day": record("samples", day="2026-99-99"),
    "the day after": manifest(set__after="2026-02-30"),
    "a seed": manifest(sampling__seeds=(1 << 64,)),
    "a seed twice": both(
        manifest(sampling__seeds=(0, 0)),
        lambda s: replace(s, completions=s.completions + tuple(replace(r, repetition=1) for r in s.completions)),
        lambda s: replace(s, scores=s.scores + tuple(replace(r, repetition=1) for r in s.scores)),
    ),
    "many metrics": record("scores", scores=lambda old: {**old, "own": {f"m{n}": 1.0 for n in range(400)}}),
    "a sample's name": record("samples", id="x\x1b[2J"),
    "no author": manifest(authors=()),
    "a verdict against its score": record("scores", verdict="PASSED"),
    "a pass without a verdict": record("scores", scores=lambda old: {"ctxbench": {**old["ctxbench"], "pass": 1.0}}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_package_that_contradicts_itself_is_refused(packages: dict[str, Made], tmp_path: Path, name: str) -> None:
    files.write(tmp_path / "tampered", files.sealed(REFUSED[name](files.read(packages["line"].package))))
    with pytest.raises(InputFault):
        files.read(tmp_path / "tampered")


def edit(file: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    """Change a file's text, and write its new digest into the manifest."""

    def tampered(folder: Path) -> None:
        path, toml = folder / file, folder / files.MANIFEST
        old = sha256(path.read_bytes())
        raw = change(path.read_text()).encode("utf-8", "surrogateescape")
        path.write_bytes(raw)
        if file != files.MANIFEST:
            text = toml.read_text().replace(old, sha256(raw))
            given = files._valid(form.Manifest, tomllib.loads(text), "")
            toml.write_text(text.replace(given.id, form.digest_of(given)[:12]))

    return tampered


def swap(file: str, put: Callable[[Path], object]) -> Callable[[Path], None]:
    """Replace a file by something else."""

    def tampered(folder: Path) -> None:
        (folder / file).unlink(missing_ok=True)
        put(folder / file)

    return tampered


def edit_manifest(old: str, new: str) -> Callable[[Path], None]:
    return edit(files.MANIFEST, lambda text: text.replace(old, new, 1))


def first_line(change: Callable[[str], str]) -> Callable[[Path], None]:
    """Change the first line of the completions."""

    def changed(text: str) -> str:
        head, _, rest = text.partition("\n")
        return f"{change(head)}\n{rest}"

    return edit(files.COMPLETIONS, changed)


def score(value: str, beside: str = '"repetition": 0') -> Callable[[Path], None]:
    """Write a score, and another field beside it, into the first record of the scores."""
    head = f'{beside}, "scores": {{"ctxbench": {{"es": {value}}}}}'
    return edit(files.SCORES, lambda text: re.sub(r'"scores": .*', f"{head}}}", text, count=1))


REASONED = '{"verdict": "FAILED", "reason": "the set is wrong", "tests_run": 900}'
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a link to a file": (swap(files.SCORES, lambda path: path.symlink_to("/etc/passwd")), "not part of a package"),
    "a link to itself": (swap(files.SCORES, lambda path: path.symlink_to(path)), "not part of a package"),
    "a pipe": (swap(files.SCORES, os.mkfifo), "not part of a package"),
    "a pipe as a manifest": (swap(files.MANIFEST, os.mkfifo), "not part of a package"),
    "a device": (swap(files.SAMPLES, lambda path: path.symlink_to("/dev/zero")), "not part of a package"),
    "a folder": (swap(files.SAMPLES, lambda path: path.mkdir()), "not part of a package"),
    "a second name of a file": (
        swap(files.SAMPLES, lambda path: path.hardlink_to(path.parent / files.SCORES)),
        "is a link",
    ),
    "a file missing": (lambda folder: (folder / files.SCORES).unlink(), "is missing"),
    "another file": (lambda folder: (folder / "evil.sh").write_text("rm"), "not part of a package"),
    "many files": (
        lambda folder: [(folder / f"{n}").write_text("") for n in range(9999)],
        "not part of a package",
    ),
    "a second source": (lambda folder: (folder / "strategy" / "b.py").write_text(""), "does not match the manifest"),
    "a folder of links": (
        lambda folder: ((folder / "strategy").rename(folder.parent / "x"), (folder / "strategy").symlink_to("/etc")),
        "not a folder",
    ),
    "a hole of a terabyte": (lambda folder: os.truncate(folder / files.SCORES, 1 << 40), "larger than"),
    "a path upwards": (edit_manifest('file = "mine.py"', 'file = "../mine.py"'), "strategy.file"),
    "a path from the root": (edit_manifest('file = "mine.py"', 'file = "/etc/passwd.py"'), "strategy.file"),
    "a path among the files": (edit_manifest('"scores.jsonl"', '"../scores.jsonl"'), "does not match the manifest"),
    "a changed file": (lambda folder: (folder / files.SCORES).write_text("{}\n"), "does not match the manifest"),
    "an id": (edit_manifest('id = "', 'id = "000000000000" # '), "id"),
    "a field": (edit_manifest("format = 1", "format = 1\nextra = 1"), "extra"),
    "a version": (edit_manifest("format = 1", "format = 2"), "format"),
    "not TOML": (edit_manifest("[set]", "[[[set"), "TOML"),
    "deep TOML": (edit_manifest("format = 1", f"x = {'[' * 1_900}{']' * 1_900}\nformat = 1"), "TOML"),
    "a long number in TOML": (edit_manifest("format = 1", f"format = {'9' * 3_900}"), "TOML|format"),
    "no number in TOML": (edit_manifest("temperature = 0.0", "temperature = nan"), "temperature"),
    "an infinite number in TOML": (edit_manifest("temperature = 0.0", "temperature = inf"), "temperature"),
    "a date in TOML": (edit_manifest('date = "', 'date = 2026-01-01 # "'), "date"),
    "a manifest of 50 MB": (edit_manifest("format = 1", f"# {'x' * (50 << 20)}\nformat = 1"), "larger than"),
    "nested tables": (
        edit_manifest("[set]", "\n".join(f"[{'a.' * 1_990}b{n}]" for n in range(30)) + "\n[set]"),
        "TOML|a",
    ),
    "many tables": (edit_manifest("[set]", "[[a]]\n" + "[[a.b]]\n" * 9_000 + "[set]"), "field a"),
    "a link in place of the package": (
        lambda folder: (folder.rename(folder.parent / "real"), folder.symlink_to(folder.parent / "real")),
        "not a folder",
    ),
    "a table of another format": (lambda folder: (folder / "scores.parquet").write_bytes(b"PAR1"), "not part of"),
    "NaN as a score": (score("NaN"), "NaN"),
    "a whole number of 300 digits as a score": (score("9" * 300), "scores.ctxbench.es"),
    "a metric twice": (score('1.0, "es": 0.0'), "twice"),
    "many keys": (
        edit_manifest("format = 1", "format = 1\n" + "\n".join(f"a.{'b.' * 60}c{n} = 1" for n in range(1500))),
        "TOML|a",
    ),
    "a deep key": (edit_manifest("format = 1", f"{'a.' * 60_000}b = 1\nformat = 1"), "characters"),
    "a less deep key": (edit_manifest("format = 1", f"{'a.' * 1_900}b = 1\nformat = 1"), "TOML|is not a known key"),
    "a file in place of the folder": (
        lambda folder: ((folder / "strategy").rename(folder.parent / "y"), (folder / "strategy").write_text("x")),
        "not part of a package",
    ),
    "a control character": (edit_manifest('title = "', 'title = "\\u001b[31m'), "title"),
    "deep JSON": (first_line(lambda _: "[" * 100_000 + "]" * 100_000), "nested"),
    "deep objects": (first_line(lambda _: '{"a":' * 5_000 + "1" + "}" * 5_000), "nested"),
    "a long number": (
        first_line(lambda old: old.replace('"context_tokens": ', '"context_tokens": ' + "9" * 10_000)),
        "JSON",
    ),
    "a large number": (
        first_line(lambda old: old.replace('"context_tokens": ', '"context_tokens": 99999999999999999')),
        "context_tokens",
    ),
    "NaN": (first_line(lambda old: old.replace('"strategy_seconds": ', '"strategy_seconds": NaN, "x": ')), "NaN"),
    "infinity": (
        first_line(lambda old: old.replace('"strategy_seconds": ', '"strategy_seconds": 1e999, "x": ')),
        "field",
    ),
    "a field twice": (first_line(lambda old: old.replace('"sample"', '"sample": "x", "sample"')), "twice"),
    "a field of a line": (first_line(lambda old: old.replace('"sample"', '"<img src=x>": 1, "sample"')), "<img src=x>"),
    "a text as a number": (
        first_line(lambda old: old.replace('"context_tokens": ', '"context_tokens": "1", "x": ')),
        "field",
    ),
    "a sample twice": (edit(files.COMPLETIONS, lambda text: text.split("\n")[0] + "\n" + text), "once"),
    "a sample less": (edit(files.COMPLETIONS, lambda text: text.partition("\n")[2]), "once"),
    "samples less": (edit(files.SAMPLES, lambda text: text.partition("\n")[2]), "once"),
    "scores in another order": (edit(files.SCORES, lambda text: "\n".join(text.split("\n")[1::-1]) + "\n"), "once"),
    "a verdict with its reason and tests": (score("1.0", f'"verdict": {REASONED}'), "field verdict"),
    "a reason beside a verdict": (score("1.0", '"verdict": "FAILED", "reason": "no"'), "field reason"),
    "a verdict that no test gives": (score("1.0", '"verdict": "BROKEN"'), "field verdict"),
    "an empty line": (edit(files.SCORES, lambda text: "\n" + text), "JSON"),
    "an unfinished line": (edit(files.SCORES, lambda text: text + "{"), "unfinished"),
    "a long line": (edit(files.SCORES, lambda text: f'{{"sample": "{"x" * (5 << 20)}"}}\n' + text), "unfinished"),
    "many lines": (edit(files.SCORES, lambda text: text + "\n" * 300_000), "unfinished"),
    "half a character": (edit(files.SCORES, lambda text: text + "\udcff\n"), "UTF-8"),
    "half a pair": (first_line(lambda old: old.replace('"text": "', '"text": "\\ud800')), "surrogate"),
    "a NUL": (first_line(lambda old: old.replace('"text": "', '"text": "\\u0000')), "NUL"),
    "a list": (first_line(lambda _: "[]"), "not a JSON object"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_folder_is_refused(packages: dict[str, Made], tmp_path: Path, name: str) -> None:
    attack, words = HOSTILE[name]
    folder = tmp_path / "hostile"
    shutil.copytree(packages["line"].package, folder)
    attack(folder)
    with pytest.raises(InputFault) as caught:
        files.read(folder)
    assert any(word in str(caught.value) for word in words.split("|")), caught.value
    assert len(str(caught.value)) < 1000 and str(caught.value).isprintable()


def test_the_command_line_packs_and_verifies(packages: dict[str, Made], tmp_path: Path) -> None:
    made = packages["line"]
    home = ["--home", str(made.home.root)]
    result = run_cli("results", "verify", str(made.package), "--all", *home)
    assert result.code == 0 and "nothing differs" in result.out, result
    tampered = both(
        manifest(title="<b>\u202eevil</b>", withdrawn=form.Withdrawal(reason="a \u202efault", date="2026-01-01")),
        record("completions", completions=first(text="<script>\u202e\x1b[31m")),
    )
    files.write(tmp_path / "tampered", files.sealed(tampered(files.read(made.package))))
    result = run_cli("results", "verify", str(tmp_path / "tampered"), *home)
    assert result.code == 10 and "withdrawn on 2026-01-01" in result.err, result
    assert "scores: " in result.out and "\u202e" not in result.out + result.err and "\x1b" not in result.out
    as_json = run_cli("results", "verify", str(tmp_path / "tampered"), "--format", "json", *home)
    (tmp_path / "tampered" / files.VERIFICATION).write_text(as_json.out)
    verification = files.verification_of(tmp_path / "tampered", files.read(tmp_path / "tampered"))
    assert verification is not None and not verification.equal
    assert files.verification_of(tmp_path / "tampered", files.read(made.package)) is None
    files.write(tmp_path / "other", files.sealed(manifest(set__digest=OTHER)(files.read(made.package))))
    assert_fault(
        run_cli("results", "verify", str(tmp_path / "other"), *home), "nor a current standard set", "ask the author"
    )
    (tmp_path / "empty").mkdir()
    assert_fault(run_cli("results", "verify", str(tmp_path / "empty"), *home), "completions.jsonl is missing")


def test_packing_does_not_overwrite_an_edited_package(packages: dict[str, Made], tmp_path: Path) -> None:
    submission = files.read(packages["line"].package)
    files.write(tmp_path / "mine", submission)
    (tmp_path / "mine" / files.SCORES).write_text("damaged")
    files.write(tmp_path / "mine", submission)
    assert files.read(tmp_path / "mine") == submission
    edit_manifest('title = "', 'title = "Better: ')(tmp_path / "mine")
    edited = files.read(tmp_path / "mine")
    for other in (submission, files.sealed(manifest(date="2026-01-01")(submission))):
        with pytest.raises(InputFault, match="contains another package, an edited one.*give --out a new"):
            files.write(tmp_path / "mine", other)
    assert files.read(tmp_path / "mine") == edited and edited.manifest.title.startswith("Better: ")


def test_the_shipped_schema_matches_the_records(packages: dict[str, Made]) -> None:
    shipped = Path(form.__file__).with_name("schema.json").read_text()
    assert shipped == form.schema()
    import json

    schema = json.loads(shipped)
    folder = packages["function"].package
    jsonschema.validate(tomllib.loads((folder / files.MANIFEST).read_text()), schema)
    for file, name in ((files.SAMPLES, "Sample"), (files.COMPLETIONS, "Answered"), (files.SCORES, "Score")):
        for text in (folder / file).read_text().splitlines():
            jsonschema.validate(json.loads(text), {**schema, "$ref": f"#/$defs/{name}Record"})


def test_a_package_reveals_no_paths_or_names_of_the_machine(packages: dict[str, Made]) -> None:
    texts = "".join(file.read_text() for file in packages["line"].package.rglob("*") if file.is_file())
    assert str(packages["line"].package.parent) not in texts and os.uname().nodename not in texts
    for spec, shown in {
        "/home/me/a b/mine.py@mine(top=1)": "mine.py@mine(top=1)",
        "hf(model=/data/models/m.gguf, revision=x/y)": "hf(model=m.gguf, revision=x/y)",
        "openai(model=m, url=http://10.0.0.7:8000/v1)": "openai(model=m, url=http://local/v1)",
        "openai(model=m, url=https://api.example.com/v1)": "openai(model=m, url=https://api.example.com/v1)",
        "aim(lc.infile, encoder=~/e)": "aim(lc.infile, encoder=e)",
    }.items():
        assert public(spec) == shown


@pytest.mark.parametrize(
    "changes",
    [{"temperature": 0.7}, {"max_tokens": 7}, {"top_p": 0.5}, {"stop": ("#",)}],
    ids=str,
)
def test_runs_with_different_decoding_are_not_packed_together(
    packages: dict[str, Made], changes: dict[str, Any]
) -> None:
    home = Home(packages["line"].package.parent / "first")
    with open_reader(home.database) as store:
        [work] = run_works(store)
        other = replace(work.choices, seed=1, sampling=replace(work.choices.sampling, seed=1, **changes))
        with pytest.raises(InputFault, match="differ in more than the seed"):
            packed(store, [work, replace(work, choices=other)], sets.load(home, work.choices.samples), **WORDS)


def test_source_code_of_a_package_does_not_run_without_isolation(
    packages: dict[str, Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InlineCells, "describe", lambda _: {"isolation": "process"})
    verification = packages["line"].verify()
    assert states(verification) == states(verification) | TRUSTED | {"strategy": "trusted"}


@pytest.mark.slow
def test_source_code_of_a_package_runs_only_in_a_cell(tmp_path: Path) -> None:
    made = make(tmp_path)
    assert made.verify().equal
    seen = tmp_path / "seen"
    for text, part in (
        (f"import sys\nsys.modules['ctxbench.evil'] = sys\nopen({str(seen)!r}, 'w').write('x')\n{MINE}", "strategy"),
        (MINE.replace("draft = ", "draft = 1 / 0 or "), "prompts"),
        (
            MINE.replace("draft = ", f"draft = open({str(made.home.root)!r} + '/samples/demo/references.jsonl') and "),
            "prompts",
        ),
    ):
        folder = tmp_path / f"tampered {part} {len(text)}"
        files.write(folder, files.sealed(source(text, version=True)(files.read(made.package))))
        verification = made.verify(folder)
        assert states(verification)[part] == "re-derived!", verification
        assert not seen.exists() and "ctxbench.evil" not in sys.modules


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.network  # for the wheels of pytest and coverage
def test_verdicts_are_re_derived_in_a_real_box_and_a_cell(tmp_path: Path) -> None:
    real("bubblewrap")
    local_manifest(tmp_path)
    first, second, package = tmp_path / "first", tmp_path / "second", tmp_path / "package"
    home, boxed = ("--home", str(first)), ("--sandbox", "bubblewrap")
    manifest_file = str(tmp_path / "demo.toml")
    build = ("samples", "build", "shop", "--kind", "function", "--repo", manifest_file)
    # One of the four functions passes its tests.
    ran = ("run", "--samples", "shop", "--strategy", "lc.infile", "--generator", "scripted(text='    return x * RATE')")
    for words in ((*build, *boxed), (*ran, *boxed)):
        assert (result := run_cli(*words, *home)).code == 0, result
    with open_store(Home(first).database) as store:
        [run_id] = [work.id for work in run_works(store)]
    assert run_cli("results", "pack", run_id, "--out", str(package), "--author", "A", *home).code == 0
    for name in ("samples", "repos"):
        shutil.copytree(first / name, second / name)

    def verified(folder: Path) -> Any:
        return run_cli("results", "verify", str(folder), "--all", "--home", str(second), *boxed)

    result = verified(package)
    assert result.code == 0 and re.search(r"verdicts +re-derived +4 of 4", result.out), result
    honest = files.read(package)
    words = [line.verdict for line in honest.scores if line.verdict]
    assert sorted(words) == ["FAILED", "FAILED", "FAILED", "PASSED"]
    place = words.index("FAILED")
    passing = record(
        "scores",
        place,
        verdict="PASSED",
        scores=lambda old: {**old, "ctxbench": {**old["ctxbench"], "pass": 1.0}},
    )
    files.write(tmp_path / "forged", files.sealed(passing(honest)))
    result = verified(tmp_path / "forged")
    sample = honest.scores[place].sample
    assert result.code == 10, result
    assert f"verdicts: 1 differ; the first difference: {sample}: verdict: the package has PASSED" in result.out
