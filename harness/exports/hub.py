"""A run for the Hugging Face hub: a data set of its samples with a card, and the results of a model card.

``README.md`` and ``data/samples.jsonl`` are a data set that `datasets.load_dataset` takes; the front matter of
``results.md`` is the ``model-index`` of a model card, which `huggingface_hub.ModelCard` reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxbench.harness import frames
from ctxbench.harness.exports.stored import ExportedRun
from ctxbench.harness.store.details import Detail

_DATA = "data/samples.jsonl"


def hub(run: ExportedRun) -> Iterator[tuple[str, str]]:
    """Yield the files of the folder."""
    details = {detail.sample: detail for detail in run.details()}
    lines = [
        json.dumps({**record, **_texts(run, details[record["sample"]])}, ensure_ascii=False)
        for record in frames.of_runs(run.tables).records()
    ]
    yield _DATA, "".join(f"{line}\n" for line in lines)
    yield "README.md", _dataset_card(run)
    yield "results.md", _results_card(run)


def _texts(run: ExportedRun, detail: Detail) -> dict[str, Any]:
    texts = [run.text(detail.sample, completion) for completion in detail.completions]
    return {
        "path": detail.path,
        "line": detail.line + 1,
        "prompt": detail.prompt,
        "target": run.target(detail.sample),
        "completions": [text for text in texts if text is not None],
    }


def _dataset_card(run: ExportedRun) -> str:
    choices = run.work.choices
    front = {
        "pretty_name": f"{choices.strategy} over {choices.samples}",
        "task_categories": ["text-generation"],
        "tags": ["code", "code-completion", "ctxbench"],
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": _DATA}]}],
    }
    lines = (
        f"Every sample of one run of ctxbench {run.code}: its prompt, its completions, its scores and its costs.",
        "",
        f"- samples: {_code(choices.samples)}, digest {_code(run.work.samples_digest)}",
        f"- strategy: {_code(choices.strategy)}",
        f"- generator: {_code(choices.generator)}",
        f"- run: {_code(run.id)}, {run.work.finished} of {run.work.planned} samples",
        *(f"- {_code(remark)}" for remark in run.work.remarks),
        "",
        "Prompts and targets are parts of the samples' repositories, under the licences of those.",
    )
    return _card(front, f"{choices.strategy} over {choices.samples}", lines)


def _results_card(run: ExportedRun) -> str:
    choices = run.work.choices
    results = [
        {
            "task": {"type": "text-generation", "name": "repository-level code completion"},
            "dataset": {
                "type": group.samples,
                "name": f"{group.samples} ({group.language})",
                "revision": group.samples_digest,
                "args": {"strategy": choices.strategy, "language": group.language},
            },
            "metrics": [
                {"type": name, "name": f"{name} ({group.scales[name].unit})", "value": mean.mean, "verified": False}
                for name, mean in row.metrics.items()
                if name in group.scales and mean.mean is not None
            ],
        }
        for group, row in run.rows()
    ]
    front = {"model-index": [{"name": choices.generator, "results": results}]}
    text = ("Copy the `model-index` above into the front matter of the model's card.",)
    return _card(front, f"Results of {choices.generator}", text)


def _card(front: Mapping[str, Any], title: str, lines: Sequence[str]) -> str:
    body = "\n".join(lines)
    return f"---\n{''.join(_yaml(front))}---\n\n# {_code(title)}\n\n{body}\n"


def _code(text: str) -> str:
    """Return a text as inline code: no Markdown of others on a page."""
    return "`" + " ".join(text.split()).replace("`", "'") + "`"


def _yaml(value: Any, indent: str = "") -> Iterator[str]:
    """Yield the lines of plain data as YAML, whose scalars are those of JSON."""
    pairs = value.items() if isinstance(value, Mapping) else (("-", item) for item in value)
    for key, item in pairs:
        head = f"{indent}-" if key == "-" else f"{indent}{key}:"
        if isinstance(item, Mapping | list) and item:
            yield f"{head}\n"
            yield from _yaml(item, f"{indent}  ")
        else:
            yield f"{head} {json.dumps(item, ensure_ascii=True)}\n"
