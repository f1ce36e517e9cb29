"""The numbers that are read of a sample set's files."""

import json
import random
from pathlib import Path

import pytest

from ctxbench.bench import anatomy
from ctxbench.bench import samples as sets
from ctxbench.bench.code_tokens import count
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.home import Home
from tests.helpers.functions import make_function_set
from tests.helpers.sets import make_set


def test_each_sample_is_measured_in_the_sets_order(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = make_set(home, repos=2, per_repo=3, masked=((0, 1),), suffix="a\nb")
    found = anatomy.measure(home, "demo")
    assert [one.repo for one in found] == [sample.repo for sample in made.samples]
    for one, sample in zip(found, made.samples, strict=True):
        target = made.references[sample.id].target
        assert (one.target_tokens, one.target_lines) == (count(target), 1)
        assert (one.prefix_lines, one.prefix_tokens) == (sample.cursor.line, count(sample.prefix))
        assert (one.suffix_lines, one.masked, one.tests, one.kind) == (2, True, 0, "line")


def test_tokens_of_a_long_text_are_those_of_the_whole() -> None:
    drawn = random.Random(7)
    kinds = [
        "\n",
        "\n\n\n",
        " ",
        "   ",
        "\t",
        "\r\n",
        "\x0c",
        "\u2028",
        "\x85",
        "HTTPServer",
        "cartTotal",
        "):",
        "----",
        "é",
        "42",
    ]
    for length in (0, 1, 5, 60, 600, 3000):
        for _ in range(20):
            text = "".join(drawn.choices(kinds, k=length))
            assert anatomy._count(text) == count(text)


def test_functions_tell_tests_and_hidden_files(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_function_set(home)
    found = anatomy.measure(home, "functions")
    assert {(one.kind, one.hidden, one.tests, one.target_lines, one.masked) for one in found} == {
        ("function", 1, 1, 3, False)
    }


def test_a_set_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownName):
        anatomy.measure(Home(tmp_path), "demo")
    with pytest.raises(UnknownName):
        sets.manifest_of(Home(tmp_path), "demo")


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path)
    make_set(home)
    path = home.samples / "demo" / "samples.jsonl"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InputFault, match="was changed"):
        anatomy.measure(home, "demo")


@pytest.mark.parametrize("line", ['{"id": 3}', "[]", '{"id": "x"}'])
def test_a_set_made_by_hand_with_the_right_digests(tmp_path: Path, line: str) -> None:
    home = Home(tmp_path)
    made = make_set(home)
    place = home.samples / "demo"
    (place / "samples.jsonl").write_text(line + "\n")
    manifest = dict(made.manifest)
    manifest["files"] = dict(manifest["files"]) | {"samples.jsonl": sets.sha256_file(place / "samples.jsonl")}
    (place / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputFault, match="samples.jsonl:1"):
        anatomy.measure(home, "demo")
