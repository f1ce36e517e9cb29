"""Check that every profile equals the official code on each row and column of the golden vectors.

The rows written for this project are in `fixtures`. The whole set comes from the fixture `shared`.
"""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from ctxbench.harness.metrics import (
    aggregate,
    by_repository,
    mean_pass_at_k,
    metrics,
    official_pass_at_k,
    pass_at_k,
    score,
)
from ctxbench.harness.metrics.published import chrf, cleaned, first_statement, identifiers

OWN = Path(__file__).parent / "fixtures"
COUNTS = {"python": 784, "java": 257}
OWN_COUNTS = {"python": 82, "java": 34}
COLUMNS = {
    "crosscodeeval": ("cceval", {"es": "es_levenshtein", "es_difflib": "es"}),
    "repocoder": ("repocoder", {}),
    "infercom": ("infercom", {}),
    "rlcoder_repoeval": ("rlcoder_repoeval", {}),
}
LANGUAGES = ("python", "java")


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def values(row: dict[str, Any], profile: str) -> dict[str, float | None]:
    texts = {name: row[name] for name in ("prompt", "prediction", "ground_truth")}
    return score(profile, row["lang"], **texts)


def differences(rows: list[dict[str, Any]], profile: str) -> Iterator[tuple[str, str, Any, Any]]:
    key, renamed = COLUMNS[profile]
    for row in rows:
        for metric, value in values(row, profile).items():
            expected = row["expected"][key][renamed.get(metric, metric)]
            if value != expected:
                yield row["id"], metric, value, expected


def intermediate_differences(rows: list[dict[str, Any]]) -> Iterator[tuple[str, str, Any, Any]]:
    for row in rows:
        language, expected = row["lang"], row["expected"]["cceval"]
        predicted, target = cleaned(language, row["prompt"], row["prediction"], row["ground_truth"])
        ours = {
            "pred_statement": first_statement(language, row["prompt"], row["prediction"]),
            "pred_clean": predicted,
            "target_clean": target,
            "pred_ids": identifiers(language, predicted),
            "target_ids": identifiers(language, target),
        }
        for name, value in ours.items():
            if value != expected[name]:
                yield row["id"], name, value, expected[name]


def assert_none(found: Iterator[tuple[str, str, Any, Any]], rows: int) -> None:
    listed = list(found)
    columns = dict(Counter(name for _, name, _, _ in listed))
    assert not listed, f"{len(listed)} values differ in {rows} rows: {columns}; first: {listed[:3]}"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("profile", COLUMNS)
def test_own_rows_equal_the_official_code(profile: str, language: str) -> None:
    rows = read(OWN / f"own_{language}.jsonl")
    assert len(rows) == OWN_COUNTS[language]
    assert_none(differences(rows, profile), len(rows))


@pytest.mark.parametrize("language", LANGUAGES)
def test_intermediate_texts_of_own_rows_equal_the_official_code(language: str) -> None:
    rows = read(OWN / f"own_{language}.jsonl")
    assert_none(intermediate_differences(rows), len(rows))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("profile", COLUMNS)
def test_all_rows_equal_the_official_code(shared: Path, profile: str, language: str) -> None:
    rows = read(shared / "golden" / f"metrics_{language}.jsonl")
    assert len(rows) == COUNTS[language]
    compared = {COLUMNS[profile][1].get(metric, metric) for metric in metrics(profile)}
    official = {name for name in rows[0]["expected"][COLUMNS[profile][0]] if name.startswith(("em", "es", "id_"))}
    assert compared == official, "a column of the golden rows is not compared"
    assert_none(differences(rows, profile), len(rows))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_all_intermediate_texts_equal_the_official_code(shared: Path, language: str) -> None:
    rows = read(shared / "golden" / f"metrics_{language}.jsonl")
    assert_none(intermediate_differences(rows), len(rows))


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
def test_aggregates_equal_the_official_numbers(shared: Path, language: str) -> None:
    rows = read(shared / "golden" / f"metrics_{language}.jsonl")
    expected = json.loads((shared / "golden" / "metrics_aggregates.json").read_text("utf-8"))[language]
    repos = [(row["source"]["repo"] or "own").replace("/", "_") for row in rows]

    official = dict(expected["cceval_results_json"])
    assert official.pop("total") == len(rows)
    ours = aggregate("crosscodeeval", [values(row, "crosscodeeval") for row in rows], repos)
    assert ours.pop("es") == expected["cceval_es_levenshtein_mean_round2"]
    ours["es"] = ours.pop("es_difflib")
    assert ours == official

    repocoder = [values(row, "repocoder") for row in rows]
    left_out = [row["id"] for row, value in zip(rows, repocoder, strict=True) if value["es"] is None]
    assert left_out == expected["line_protocol_rows_left_out"]
    for metric in ("em", "es"):
        table = by_repository(repocoder, repos, metric)
        assert {repo: [one.mean, one.rows] for repo, one in table.items()} == expected["repocoder_per_repo"][
            metric.upper()
        ]

    infercom = aggregate("infercom", [values(row, "infercom") for row in rows], repos)
    shown = {name.upper() if name in ("em", "es") else name: f"{value:.2f}" for name, value in infercom.items()}
    assert shown == expected["infercom_overall_x100"]


def best_of(predictions: list[str], ground_truth: str) -> dict[str, float | None]:
    scores = [
        score("repocoder", "python", prompt="", prediction=text, ground_truth=ground_truth) for text in predictions
    ]
    return {
        metric: max((value for of in scores if (value := of[metric]) is not None), default=None)
        for metric in ("em", "es")
    }


def test_best_of_k_equals_the_official_code(shared: Path) -> None:
    rows = read(shared / "golden" / "metrics_multi_sample.jsonl")
    assert len(rows) == 45
    wrong = [
        (row["id"], k)
        for row in rows
        for k, expected in row["expected_repocoder_by_k"].items()
        if best_of(row["predictions"][: int(k)], row["ground_truth"]) != expected
    ]
    assert not wrong, f"{len(wrong)} differ: {wrong[:5]}"


def test_pass_at_k_of_each_problem_equals_the_official_code(shared: Path) -> None:
    rows = read(shared / "golden" / "pass_at_k.jsonl")
    assert len(rows) == 150
    wrong = [row["id"] for row in rows if official_pass_at_k(row["n"], row["c"], row["k"]) != row["pass_at_k"]]
    wrong += [
        row["id"]
        for row in rows
        if row["k"] <= row["n"] and pass_at_k(row["n"], row["c"], row["k"]) != row["pass_at_k"]
    ]
    assert not wrong, f"{len(wrong)} differ: {wrong[:5]}"


def test_mean_pass_at_k_equals_the_official_code(shared: Path) -> None:
    rows = read(shared / "golden" / "pass_at_k_dataset.jsonl")
    assert len(rows) == 10
    wrong = [row["id"] for row in rows if mean_pass_at_k(row["n"], row["c"], row["k"]) != row["mean_pass_at_k"]]
    assert not wrong, f"{len(wrong)} differ: {wrong}"


TEXTS = st.text(alphabet="ab c\n\t(_é\u3000", max_size=40)


def sacrebleus(prediction: str, ground_truth: str) -> float:
    return float(CHRF().sentence_score(prediction, [ground_truth]).score)


@given(TEXTS, TEXTS)
def test_chrf_equals_sacrebleu(prediction: str, ground_truth: str) -> None:
    assert 100 * chrf(prediction, ground_truth) == sacrebleus(prediction, ground_truth)


@pytest.mark.parametrize(
    ("prediction", "ground_truth"),
    [
        ("return apply_tax(cart, rate)", "return apply_tax(cart, rate)"),
        ("return apply_tax(cart)", "return apply_tax(cart, rate)\n    log.debug(cart)"),
        ("", "x"),
        ("x", ""),
        ("", ""),
        ("ab", "abcdefgh"),
        ("# only a comment", "value  # a comment"),
    ],
)
def test_the_context_collection_score_equals_sacrebleu(prediction: str, ground_truth: str) -> None:
    texts = {"prediction": prediction, "ground_truth": ground_truth}
    [value] = score("context_collection", "python", prompt="", **texts).values()
    assert value is not None and 100 * value == sacrebleus(prediction, ground_truth)
