import dataclasses
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from ctxbench import strategies
from ctxbench.bench.errors import InputFault
from ctxbench.bench.types import Kind
from ctxbench.strategies import (
    AtLeast,
    Context,
    Execute,
    Generate,
    Inner,
    Prompt,
    Query,
    Repository,
    Snippet,
    resolve,
    strategy,
)
from ctxbench.strategies.registry import get, names
from ctxbench.strategies.tiny import query_for, view_for

NEIGHBOURS = '''\
"""Neighbours: the files that live beside the target."""
from posixpath import commonprefix, dirname

from ctxbench.strategies import Context, Query, Repository, Snippet, strategy


@strategy("neighbours")
def neighbours(query: Query, repo: Repository, *, limit: int = 5) -> Context:
    """Rank the files of the target's own folder by the length of the shared name."""
    here = dirname(query.path)
    beside = [path for path in repo.files() if dirname(path) == here and path != query.path]
    return Context.ranked(
        Snippet(path=path, text=repo.read(path), score=len(commonprefix([path, query.path]))) for path in beside
    ).top(limit)
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "neighbours.py"
    path.write_text(NEIGHBOURS)
    return path


def _run(spec: str) -> Prompt:
    query = query_for(Kind.LINE)
    return resolve(spec)(query, view_for(query), lambda *_, **__: "draft")


def test_exported_names_exist_and_are_sorted() -> None:
    assert list(strategies.__all__) == sorted(strategies.__all__)
    for name in strategies.__all__:
        assert hasattr(strategies, name)


def test_importing_strategies_loads_no_heavy_packages() -> None:
    heavy = ["numpy", "sqlalchemy", "torch", "pandas", "tree_sitter", "rich", "click", "pydantic"]
    code = f"import sys, ctxbench.strategies; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_strategy_file_works_without_installation(file: Path) -> None:
    prompt = _run(f"{file}@neighbours(limit=2)")
    assert "# shop/cart.py\n" in prompt.text and "neighbours" not in names()
    assert resolve(f"{file}@neighbours").version != resolve("lc.infile").version


def test_an_edited_file_is_read_again(file: Path) -> None:
    before = resolve(f"{file}@neighbours").version
    file.write_text(NEIGHBOURS.replace("limit: int = 5", "limit: int = 1"))
    bound = resolve(f"{file}@neighbours")
    assert bound.version != before and bound.strategy.parameters[0].default == 1


def test_files_may_reuse_strategy_names_of_other_files_and_built_ins(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(NEIGHBOURS.replace('"neighbours"', '"lc.infile"') + "import ctxbench.strategies.repocoder\n")
    assert resolve(f"{other}@lc.infile").strategy.function is not resolve("lc.infile").strategy.function
    assert resolve("lc.repocoder").spec == "lc.repocoder"


def test_a_file_may_import_a_module_beside_it(file: Path) -> None:
    (file.parent / "zq_beside.py").write_text("LIMIT = 3\n")
    file.write_text("from zq_beside import LIMIT\n" + NEIGHBOURS.replace("= 5", "= LIMIT"))
    assert resolve(f"{file}@neighbours").strategy.parameters[0].default == 3
    assert str(file.parent) not in sys.path


def _with_helpers(folder: Path) -> Path:
    """Write a strategy file, a module that it imports, and a package that the module imports when called."""
    folder.mkdir(exist_ok=True)
    file = folder / "mine.py"
    file.write_text("from zq_helpers import LIMIT\n" + NEIGHBOURS.replace("= 5", "= LIMIT"))
    (folder / "zq_helpers.py").write_text("LIMIT = 3\ndef late():\n    from zq_package.inner import x\n")
    (folder / "zq_package").mkdir(exist_ok=True)
    for name in ("__init__", "inner"):
        (folder / "zq_package" / f"{name}.py").write_text("x = 1\n")
    return file


@pytest.mark.parametrize("edited", ["mine.py", "zq_helpers.py", "zq_package/__init__.py", "zq_package/inner.py"])
def test_the_version_covers_a_file_and_its_imports_from_the_same_folder(edited: str, tmp_path: Path) -> None:
    file = _with_helpers(tmp_path)
    before = resolve(f"{file}@neighbours").version
    (tmp_path / edited).write_text((tmp_path / edited).read_text() + "more = 1\n")
    assert resolve(f"{file}@neighbours").version != before


def test_other_files_in_the_folder_do_not_change_the_version(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A project's root may contain all of these files. The strategy imports only installed modules.
    file.write_text("import json\nimport time\n\nimport numpy\nimport zq_installed\n" + NEIGHBOURS)
    site = tmp_path / "venv" / "site-packages"
    site.mkdir(parents=True)
    (site / "zq_installed.py").touch()
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    for name in ("json", "time", "other", "conftest", "zq_installed"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not this one')\n")
    for name in ("ctxbench", "tests", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    line = f"neighbours.py\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n"
    # The version is the digest of the strategy file alone.
    assert resolve(f"{file}@neighbours").version == hashlib.sha256(line.encode()).hexdigest()[:12]


def test_an_edited_helper_module_is_reloaded_only_for_its_own_folder(tmp_path: Path) -> None:
    first, second = _with_helpers(tmp_path / "first"), _with_helpers(tmp_path / "second")

    def limit(file: Path) -> object:
        return resolve(f"{file}@neighbours").strategy.parameters[0].default

    assert (limit(first), limit(second)) == (3, 3)
    (tmp_path / "first" / "zq_helpers.py").write_text("LIMIT = 10\n")
    assert (limit(first), limit(second)) == (10, 3)
    (tmp_path / "second" / "zq_helpers.py").write_text("LIMIT = 11\n")
    assert (limit(first), limit(second)) == (10, 11)


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("lc.repocoder", "lc.repocoder"),
        ("lc.repocoder()", "lc.repocoder"),
        ("lc.repocoder(iterations=2)", "lc.repocoder"),
        ("lc.repocoder( window = 30,iterations=1 )", "lc.repocoder(iterations=1, window=30)"),
        ("lc.repocoder(empty_header=on)", "lc.repocoder(empty_header=true)"),
        ("lc.repocoder(q2_partial='drop')", "lc.repocoder(q2_partial=drop)"),
        ("lc.infile(4096)", "lc.infile"),
        ("lc.infile(99)", "lc.infile(limit=99)"),
    ],
)
def test_one_configuration_has_one_spelling(spec: str, canonical: str) -> None:
    assert resolve(spec).spec == canonical
    assert resolve(canonical).spec == canonical


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("lc.repocodr", "did you mean lc.repocoder"),
        ("glod", "did you mean gold?"),
        ("oracle-contex", "did you mean oracle-context or"),
        ("oracle", "oracle-stored or oracle-context?"),
        ("aim(blanc)", "did you mean blank?"),
        ("gold", "gold is a control, not a strategy; use it in a run: `ctxbench run --strategy gold`"),
        ("aim(blank)", "blank is a control, not a strategy"),
        ("lc.repocoder(windows=20)", "known parameters: iterations, window, stride"),
        ("lc.repocoder(iterations=two)", "give a whole number, at least 0"),
        ("lc.repocoder(iterations=1.5)", "give a whole number"),
        ("lc.repocoder(iterations=true)", "give a whole number"),
        ("lc.repocoder(iterations=-1)", "at least 0"),
        ("lc.repocoder(window=1)", "at least 2"),
        ("lc.repocoder(q2_lines=last)", "give all or first"),
        ("lc.repocoder(empty_header=2)", "give true or false"),
        ("lc.infile(limit=0)", "at least 1"),
        ("lc.infile(limit=1, limit=2)", "keep one"),
        ("lc.infile(1, limit=2)", "keep one"),
        ("lc.infile(1, 2)", "is not key=value"),
        ("nowhere/x.py@y", "no such file"),
        ("", "write it as name"),
    ],
)
def test_an_invalid_spec_says_what_to_write(spec: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        resolve(spec)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        ("def broken(:\n", "x", "SyntaxError"),
        ("import no_such_module_zq\n", "x", "ModuleNotFoundError"),
        ("raise SystemError('at import')\n", "x", "at import"),
        ("", "x", "no strategy is called 'x'"),
        (NEIGHBOURS, "neighbour", "did you mean neighbours"),
        (NEIGHBOURS + NEIGHBOURS, "neighbours", "twice"),
        (NEIGHBOURS.replace("repo: Repository, *, limit: int = 5", "repo, limit=5"), "neighbours", "after the star"),
        (NEIGHBOURS.replace("limit: int = 5", "limit: int"), "neighbours", "add a default"),
        (NEIGHBOURS.replace("limit: int = 5", "limit=5"), "neighbours", "limit: int = 10"),
        (NEIGHBOURS.replace("limit: int = 5", "limit: list = []"), "neighbours", "limit: int = 10"),
        (NEIGHBOURS.replace("limit: int = 5", "limit: int = '5'"), "neighbours", "whole number"),
        (NEIGHBOURS.replace('"neighbours"', '"a b"'), "neighbours", "use letters"),
        (NEIGHBOURS.replace('"neighbours"', '"gold"'), "gold", "name of a control"),
        (
            "from __future__ import annotations\n" + NEIGHBOURS.replace("limit: int", "limit: Int"),
            "x",
            "top of the module",
        ),
    ],
)
def test_a_faulty_file_says_what_to_change(tmp_path: Path, content: str, name: str, words: str) -> None:
    path = tmp_path / "faulty.py"
    path.write_text(content)
    with pytest.raises(InputFault) as caught:
        resolve(f"{path}@{name}")
    assert words in str(caught.value) and "faulty.py" in str(caught.value), str(caught.value)


def test_a_strategy_name_can_be_registered_once() -> None:
    resolve("lc.infile")
    with pytest.raises(InputFault, match="rename one of them"):

        @strategy("lc.infile")
        def mine(query: Query, repo: Repository) -> Context:
            raise NotImplementedError


def test_parameters_are_read_from_the_signature() -> None:
    @strategy("test.all", kinds=(Kind.LINE, Kind.FUNCTION))
    def everything(
        query: Query,
        repo: Repository,
        generate: Generate,
        *,
        whole: Annotated[int, AtLeast(0)] = 1,
        part: float = 0.5,
        switch: bool = False,
        word: str = "auto",
        choice: Literal["a", "b"] = "a",
    ) -> Context:
        return Context((Snippet(path="a.py", text=f"{whole} {part!r} {switch} {word} {choice}"),))

    bound = resolve("test.all(part=2, switch=yes, word='two words', choice=b)")
    assert bound.drafts and bound.kinds == {Kind.LINE, Kind.FUNCTION}
    assert bound.spec == "test.all(choice=b, part=2.0, switch=true, word='two words')"
    assert "# 1 2.0 True two words b\n" in _run(bound.spec).text
    assert get("test.all").summary == ""


@pytest.mark.parametrize("result", [None, "text", 3, [Snippet(path="a", text="b")]])
def test_a_strategy_must_return_a_context_or_a_prompt(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bound = resolve("lc.infile")
    object.__setattr__(bound, "strategy", dataclasses.replace(bound.strategy, function=lambda *_, **__: result))
    query = query_for(Kind.LINE)
    with pytest.raises(InputFault, match="return a Context or a Prompt"):
        bound(query, view_for(query), lambda *_, **__: "")


@strategy("test.wrapper", kinds=(Kind.LINE, Kind.FUNCTION))
def wrapper(
    query: Query, repo: Repository, generate: Generate, execute: Execute, *, k: int = 4, inner: Inner = "lc.infile"
) -> Prompt:
    """Show what the wrapped strategy shows."""
    return resolve(inner)(query, repo, generate, execute)


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("test.wrapper", "test.wrapper(inner=lc.infile)"),
        ("test.wrapper(inner=lc.infile(limit=4096))", "test.wrapper(inner=lc.infile)"),
        (
            "test.wrapper(k=2, inner=lc.repocoder( window=30,iterations=1 ))",
            "test.wrapper(inner=lc.repocoder(iterations=1, window=30), k=2)",
        ),
    ],
)
def test_a_wrappers_spec_always_names_the_wrapped_strategy(spec: str, canonical: str) -> None:
    assert resolve(spec).spec == canonical
    assert resolve(canonical).spec == canonical


def test_a_wrapper_takes_kinds_and_version_from_the_wrapped_strategy(file: Path) -> None:
    bound = resolve(f"test.wrapper(inner={file}@neighbours(limit=2))")
    (inner,) = bound.inner
    assert inner.spec == f"{file}@neighbours(limit=2)" and bound.kinds == {Kind.LINE} and not bound.executes
    version = bound.version
    assert version not in (inner.version, bound.strategy.version, resolve("test.wrapper").version)
    file.write_text(NEIGHBOURS + "# edited\n")
    assert resolve(bound.spec).version != version
    assert _run(bound.spec).text == _run(inner.spec).text


def test_a_wrapper_takes_the_languages_of_the_wrapped_strategy() -> None:
    assert resolve("test.wrapper").languages == frozenset()
    assert resolve("test.wrapper(inner=test.python)").languages == {"python"}
    assert resolve("test.java").languages == {"java"}


def test_a_wrapper_of_a_strategy_that_executes_needs_a_sandbox(file: Path) -> None:
    file.write_text(NEIGHBOURS.replace("repo: Repository, *", "repo: Repository, generate, execute, *"))
    bound = resolve(f"test.wrapper(inner={file}@neighbours)")
    assert bound.executes
    with pytest.raises(InputFault, match="needs a sandbox"):
        _run(bound.spec)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("test.wrapper(inner=test.wrapper)", "wrap a strategy that is not a wrapper"),
        ("test.wrapper(inner=lc.infil)", "did you mean lc.infile"),
        ("test.wrapper(inner=lc.infile(limit=0))", "at least 1"),
        ("test.wrapper(inner=3)", "give a strategy"),
        ("test.lines(inner=test.functions)", "takes line samples only"),
        ("test.java(inner=test.python)", "takes java samples only"),
    ],
)
def test_an_invalid_wrapped_strategy_says_what_to_change(spec: str, words: str) -> None:
    with pytest.raises(InputFault) as caught:
        resolve(spec)
    assert words in str(caught.value) and "\n" not in str(caught.value)


@strategy("test.lines")
def lines(query: Query, repo: Repository, *, inner: Inner = "lc.infile") -> Prompt:
    raise NotImplementedError


@strategy("test.java", languages=("java",))
def java(query: Query, repo: Repository, *, inner: Inner = "lc.infile") -> Prompt:
    raise NotImplementedError


@strategy("test.python", languages=("python",))
def python(query: Query, repo: Repository) -> Prompt:
    raise NotImplementedError


@strategy("test.functions", kinds=(Kind.FUNCTION,))
def functions(query: Query, repo: Repository) -> Prompt:
    raise NotImplementedError
