"""Long encoding says how far it is, on the command line."""

import pytest

from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.retrieval.retrieval import Retrieval
from ctxbench.bench.types import Cursor, Kind, Query
from ctxbench.harness.cli.terminal import progress
from tests.helpers.views import make_view


def search(count: int) -> None:
    texts = {"all.py": "".join(f"def function_{n}():\n    return {n}\n\n\n" for n in range(count))}
    query = Query(
        id="q",
        benchmark="b",
        language=PYTHON,
        kind=Kind.LINE,
        subkind="single-line",
        repo="r",
        path="other.py",
        cursor=Cursor(line=0, column=0),
        prefix="",
    )
    view = make_view(query, texts, retrieval=Retrieval(None))
    assert view.search("function_7", ranker="hashed", top=1)


def test_many_texts_are_remarked_on(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("lc.x", 1):
        search(1100)
    assert "hashed: 1100 of 1100 texts encoded; they are kept for later runs" in capsys.readouterr().err


def test_few_texts_and_no_command_line_are_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("lc.x", 1):
        search(20)
    search(1100)
    assert "encoded" not in capsys.readouterr().err
