"""`ctxbench score`: what it writes, and the one line it says when the file is broken."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli import assert_fault, run_cli

GOOD = {"id": "a", "prompt": "x = ", "prediction": "f(a)  # no\nmore", "ground_truth": "f(a)"}
BLANK = {"id": "b", "prompt": "x = ", "prediction": "g(b)", "ground_truth": " "}
METRICS = ["em", "es", "id_em", "id_precision", "id_recall", "id_f1"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "predictions.jsonl", GOOD, BLANK)


def write(path: Path, *rows: Any) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def parse(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_scores_go_to_stdout_in_order_and_means_to_stderr(file: Path) -> None:
    result = run_cli("score", str(file), "--language", "python")
    assert result.code == 0, result
    rows = parse(result.out)
    assert [row["id"] for row in rows] == ["a", "b"]
    assert list(rows[0]) == ["id", *METRICS]
    assert rows[0] == {"id": "a", **dict.fromkeys(METRICS, 1)}
    assert "50.00" in result.err


def test_the_official_profiles_keep_their_scale_and_leave_out_what_is_undefined(file: Path) -> None:
    rows = parse(run_cli("score", str(file), "--language", "python", "--profile", "crosscodeeval").out)
    assert rows[0]["es"] == 100 and rows[0]["es_difflib"] == 100 and rows[1]["es"] == 0
    result = run_cli("score", str(file), "--language", "python", "--profile", "repocoder")
    assert parse(result.out)[1] == {"id": "b", "em": 1}
    assert "1 of 2 completions have a blank target" in result.err


def test_out_is_written_whole_and_equals_stdout(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "scores.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--out", str(out))
    assert result.code == 0 and result.out == ""
    assert out.read_text() == run_cli("score", str(file), "--language", "python", "--workers", "1").out


def test_all_profiles_side_by_side(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--profile", "all", "--out", str(out))
    table = [line.split() for line in result.out.splitlines()]
    assert table[0] == ["profile", "n", "em", "es", "id_em", "id_f1", "chrf"]
    names = ["ctxbench", "context_collection", "crosscodeeval", "infercom", "repocoder", "rlcoder_repoeval"]
    assert [row[0] for row in table[1:]] == names
    assert table[5] == ["repocoder", "2", "0.00", "40.00", "-", "-", "-"]
    assert list(parse(out.read_text())[0]) == ["id", *names]


LINE = json.dumps(GOOD)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("predictions.jsonl", "no completion", "ground_truth")),
        ("\n\n", ("no completion",)),
        (LINE[:-9], (":1:", "not complete json", "nothing was scored")),
        (f"{LINE}\n[1]\n", (":2:", "not a json object")),
        (f"{LINE}\n{LINE}\n", (":2:", "'a'", "line 1")),
        (json.dumps({**GOOD, "prompt": None}), (":1:", "field 'prompt' is not text")),
        (json.dumps({**GOOD, "id": 3}), (":1:", "field 'id' is not text")),
        (json.dumps({**GOOD, "id": "\ud800"}), (":1:", "unprintable")),
        (json.dumps({"id": "a", "prompt": "", "prediction": ""}), ("field 'ground_truth' is missing",)),
        ("[" * 100_000, (":1:",)),
        ("{}\n{}\n", (":1: field 'id' is missing", "(and 3 more)", "a JSON object")),
        (f'{LINE}\n{{"id"\n{LINE}\n', (":2:", ":3:", "nothing was scored")),
    ],
)
def test_a_broken_file_is_one_line_with_every_place(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    file = tmp_path / "predictions.jsonl"
    file.write_text(text, "utf-8")
    out = tmp_path / "scores.jsonl"
    result = run_cli("score", str(file), "--language", "python", "--out", str(out))
    assert_fault(result, *words)
    assert result.out == "" and not out.exists()


def test_missing_folder_and_foreign_encoding(tmp_path: Path) -> None:
    assert_fault(run_cli("score", str(tmp_path / "no.jsonl"), "--language", "python"), "no such file", "check the path")
    assert_fault(run_cli("score", str(tmp_path), "--language", "python"), "folder", "path of a file")
    latin = tmp_path / "latin.jsonl"
    latin.write_bytes(b'{"id": "\xe9"}')
    assert_fault(run_cli("score", str(latin), "--language", "python"), "UTF-8")


def test_unknown_profile_and_a_place_that_cannot_be_written(file: Path, tmp_path: Path) -> None:
    command = ("score", str(file), "--language", "python")
    assert_fault(run_cli(*command, "--profile", "repocode"), "did you mean repocoder")
    assert_fault(run_cli(*command, "--out", str(file / "below.jsonl")), "not a folder")
    kept = tmp_path / "scores.jsonl"
    kept.write_text("kept")
    assert_fault(
        run_cli("score", str(tmp_path / "no.jsonl"), "--language", "python", "--out", str(kept)), "no such file"
    )
    assert kept.read_text() == "kept"
