"""Write harness/paper_tables.json, the tables of the ICL-strategies and InferCom papers, from a transcription.

``python -m scripts.paper_tables TRANSCRIPTION.json``. Each row of a table becomes one line: its preset, the strategy
that computes it here, the printed numbers and their origin, doubts about them, and reasons for missing numbers. The
transcription is not part of this project.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ctxbench.bench.spec import Spec

OUT = Path(__file__).resolve().parents[1] / "harness" / "paper_tables.json"
_TABLES = {
    ("ICL-strategies paper", "Table 1"): "icl-table1",
    ("ICL-strategies paper", "Table 2"): "icl-table2",
    ("ICL-strategies paper", "Table 3"): "icl-table3",
    ("ICL-strategies paper", "Table 4"): "icl-table4",
    ("InferCom paper", "Table 3"): "infercom-table3",
    ("InferCom paper", "Table 4"): "infercom-table4",
    ("InferCom paper", "Table 5"): "infercom-table5",
    ("InferCom paper", "Table 6"): "infercom-table6",
    ("InferCom paper", "Section 6.4 (text)"): "infercom-section6.4",
}
_COLUMNS = {
    "context_tokens_avg": "tokens",
    "code_em": "em",
    "code_es": "es",
    "construction_seconds": "construction",
    "inference_seconds": "inference",
    "exactly_completed_tasks": "completed",
    "overall_avg": "overall",
}
# The release's names of its tasks, which are all Python.
_BENCHMARKS = {"50": "sota_test"}
_LANGUAGES = {"not_stated": "python"}
_ENCODERS = {
    # Needed if the file to complete is empty and the strategy falls back on retrieval.
    "icl.infile": "codet5p-110m",
    "icl.selfdoc": "codet5p-110m",
    # The paper's main encoder, which Table 6 and section 6.4 do not repeat.
    "lc.infercom": "unixcoder",
    "lc.repofuse": "unixcoder",
    # Encoder of the program that probably computed the row.
    "base.rlcoder": "unixcoder",
    "base.repocoder_fn": "unixcoder",
    # ctxbench lacks the original encoders (reacc-py-retriever, text-embedding-ada-002).
    "base.reacc": "unixcoder",
    "base.cocogen": "unixcoder",
}
"""Encoders for rows that print no encoder although their strategy may need one."""
_SWITCHES = {"lc.repocoder": {"empty_header": True}, "lc.repofuse": {"query_tokens": 512, "unmasked": True}}
"""Parameters of the line presets that differ from the strategy's own defaults. UniXcoder reads 512 tokens."""


_SEE_CHECKS = " (see checks.multiples)"
"""A reference into the transcription, which readers of the record do not have."""
_AS_IN_TABLE_3 = "row absent from the available copy of the paper; the baseline values equal Table 3"
_OF_TEN = "its numbers fit means over 10 completions a task"


def converted(transcription: Mapping[str, Any]) -> str:
    """Return the text of the record: JSON, one row of a table per line."""
    presets = {row["row_id"]: row["preset"] for row in transcription["rows"]}
    of_ten = set(transcription["checks"]["multiples"]["mean_of_10_samples_rows"])
    rows = [_row(row, presets, of_ten) for row in transcription["rows"]]
    printed = {_setting(row): row["printed"] for row in rows if row["table"] == "infercom-table3"}
    for row in rows:
        if row.get("remarks") == [_AS_IN_TABLE_3]:
            row["printed"] = printed[_setting(row)]
            row["remarks"] = ["row absent from the available copy of the paper; its values are Table 3's"]
            del row["missing"]
    return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n"


def _row(row: Mapping[str, Any], presets: Mapping[str, str], of_ten: Collection[str]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "preset": row["preset"],
        "table": _TABLES[row["paper"], row["table"]],
        "row": row["row"],
        "benchmark": _BENCHMARKS.get(row["benchmark"][:2], row["benchmark"]),
        "method": row["method"],
        "model": row["model"],
        "origin": row["origin"],
        "strategy": _strategy(row),
        "encoder": row["encoder_id"],
        "printed": {},
        "missing": {},
        "flags": {},
        "remarks": [_words(flag, presets) for flag in row.get("flags", [])] + [_OF_TEN] * (row["row_id"] in of_ten),
        "inferred_n": row.get("inferred_sample_count"),
    }
    for value in row["values"]:
        language = _LANGUAGES.get(value["language"], value["language"])
        column = _column(value)
        if value["status"] == "ok":
            record["printed"].setdefault(language, {})[column] = value["value"]
        else:
            record["missing"].setdefault(language, {})[column] = value["status"]
        if value.get("flags"):
            record["flags"][f"{language}.{column}"] = "; ".join(_words(flag, presets) for flag in value["flags"])
    return {key: value for key, value in record.items() if value}


def _setting(row: Mapping[str, Any]) -> tuple[str, ...]:
    [language] = {**row.get("printed", {}), **row.get("missing", {})}
    return (row["benchmark"], row["method"], row["model"], language)


def _words(flag: str, presets: Mapping[str, str]) -> str:
    """Return a flag in words, without code names and references into the transcription."""
    text = flag.removesuffix(_SEE_CHECKS).replace("_", " ")
    return re.sub(r"\b(?:icl|ic)\.t\d+\.\d+\b", lambda match: presets[match[0]], text)


def _column(value: Mapping[str, Any]) -> str:
    name = value["level"] if value["metric"] == "pass@1" else value["metric"]
    return _COLUMNS.get(name, str(name))


def _strategy(row: Mapping[str, Any]) -> str:
    name = row["strategy"]
    if name.startswith("external."):
        return ""
    arguments = dict(row["params"])
    encoder = row["encoder_id"] or _ENCODERS.get(name, "")
    if "inner" in arguments:
        inner = arguments["inner"]
        own = {"encoder": _ENCODERS[inner]} if inner in _ENCODERS else {}
        arguments["inner"] = str(Spec(inner, {**_SWITCHES.get(inner, {}), **own}))
    arguments |= _SWITCHES.get(name, {})
    arguments |= {"encoder": encoder} if encoder else {}
    return str(Spec(name, arguments))


def main() -> None:
    """Write harness/paper_tables.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("transcription", type=Path)
    options = parser.parse_args()
    OUT.write_text(converted(json.loads(options.transcription.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
