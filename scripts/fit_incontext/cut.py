"""Cut samples out of unpacked packages with the benchmark's own builder, and prompt them with its strategies.

So the weights learn from what they will meet: no target line stands elsewhere in its repository. Each
sample gets a prompt of one kind, or of all: in-file only, with random windows, with RepoCoder's windows of
one and of two rounds, with windows retrieved with the reference, and with API signatures among which the
target's own may be. None of the packages is in a benchmark set.

    python -m scripts.fit_incontext.cut LANGUAGE FOLDER… --out OUT.jsonl --drafts WEIGHTS.npz [--all-kinds]
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ctxbench.bench.languages.base import Language
from ctxbench.bench.lines.build import build_samples
from ctxbench.bench.lines.candidates import read_protocol
from ctxbench.bench.repositories import snapshot
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repository import Repository, digest_of, view
from ctxbench.bench.types import Query, Reference, Sample
from ctxbench.harness.cells import InlineCells
from ctxbench.harness.generators.incontext.decode import complete
from ctxbench.harness.generators.incontext.model import CopyModel
from ctxbench.strategies.api import Block, BlockKind, Prompt
from ctxbench.strategies.layout import WHOLE, as_found, draft_query, infile_prompt, similar_prompt
from scripts.fit_incontext.api import signatures

CHANCES = {
    "infile": 0.2,
    "random": 0.12,
    "similar": 0.22,
    "repocoder": 0.14,
    "similar+api": 0.14,
    "reference": 0.06,
    "reference+api": 0.12,
}
"""The kinds of prompts, and how often each is fitted on."""
_RANDOM = f"{Path(__file__).parents[2] / 'tests/helpers/random_windows.py'}@control.random"
PROTOCOL = read_protocol("ctxbench(compared=text)")
"""The rules of `ctxbench-1`, so that the shipped weights can be fitted once more."""
_LINES, _TOP = 20, 20
"""RepoCoder's window and how many it retrieves."""
_NO_TARGETS = ("vendor", "/test/")


class Prompter:
    """Makes the prompts of the samples of one repository."""

    def __init__(self, snapshot: Snapshot, drafter: CopyModel) -> None:
        """Collect the repository's signatures.

        Args:
            snapshot: the repository.
            drafter: writes the drafts of RepoCoder's second round.
        """
        self.snapshot, self.drafter, self.cells = snapshot, drafter, InlineCells()
        self.api: dict[str, list[tuple[str, str]]] = {}
        for path, text in snapshot.texts.items():
            for name, signature in signatures(path, text, snapshot.language):
                self.api.setdefault(name, []).append((path, signature))

    def prompt(self, kind: str, sample: Sample, reference: Reference) -> Prompt:
        """Return a sample's prompt of one kind."""
        query = sample.query()
        repo = view(self.snapshot, query, sample.masked)
        windows, _, api = kind.partition("+")
        prompt = self._windows(windows, query, repo, reference)
        if not api:
            return prompt
        block = Block(kind=BlockKind.API, text=self._apis(query, reference, always=windows == "reference"))
        return Prompt(blocks=(*prompt.blocks[:-1], block, prompt.blocks[-1]))

    def _windows(self, kind: str, query: Query, repo: Repository, reference: Reference) -> Prompt:
        if kind == "infile":
            return infile_prompt(query, WHOLE)
        if kind == "reference":
            hits = repo.similar_windows(draft_query(query, reference.target, _LINES), top=_TOP)
            return similar_prompt(query, as_found(hits))
        specs = {"random": _RANDOM, "similar": "lc.repocoder(iterations=1)", "repocoder": "lc.repocoder(iterations=2)"}
        return self.cells.run(specs[kind], query, repo, self._draft)

    def _draft(self, prompt: Prompt, *, role: str = "draft", max_tokens: int = 128) -> str:
        return complete(self.drafter, self.drafter.read(prompt), max_tokens).text

    def _apis(self, query: Query, reference: Reference, *, always: bool) -> str:
        lot = random.Random(f"api {query.id}")  # noqa: S311
        line = query.prefix.rpartition("\n")[2] + reference.target
        own = [api for name in sorted(set(re.findall(r"\w+", line))) for api in self.api.get(name, ())[:2]]
        keys = sorted(self.api)
        others = [lot.choice(self.api[lot.choice(keys)]) for _ in range(4)] if keys else []
        used = [api for api in own if api[0] != query.path][:4] if always or lot.random() < 0.6 else []
        mixed = list(dict.fromkeys(text for path, text in [*used, *others] if path != query.path))[:6]
        lot.shuffle(mixed)
        return "# Here are some APIs that may be used from other files\n" + "".join(mixed) + "\n"


def read(folder: Path, language: Language) -> Snapshot:
    """Read a package, without its tests and the packages it carries."""
    whole = snapshot.load(folder.name, folder, language)
    texts = {p: t for p, t in whole.texts.items() if not any(part in f"/{p}" for part in _NO_TARGETS)}
    return replace(whole, texts=texts, digest=digest_of(texts))


def record(sample: Sample, reference: Reference, kind: str, prompt: Prompt) -> Mapping[str, object]:
    """Return one line of the output."""
    return {
        "id": sample.id,
        "package": sample.repo,
        "subkind": sample.subkind,
        "kind": kind,
        "prefix": sample.prefix,
        "blocks": [(block.kind, block.text) for block in prompt.blocks if block.text],
        "target": reference.target,
    }


def main() -> None:
    """Write the samples."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", type=Language)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--drafts", type=Path, required=True, help="weights that write the drafts")
    parser.add_argument("--per-package", type=int, default=250)
    parser.add_argument("--all-kinds", action="store_true")
    options = parser.parse_args()
    drafter = CopyModel.load(options.drafts, options.language)
    counted: Counter[str] = Counter()
    with options.out.open("w", encoding="utf-8") as out:
        for folder in sorted(options.folder):
            package = read(folder, options.language)
            samples = build_samples([package], per_repo=options.per_package, seed=0, protocol=PROTOCOL)
            prompter = Prompter(package, drafter)
            for sample, reference in zip(samples.samples, samples.references, strict=True):
                lot = random.Random(f"kind {sample.id}")  # noqa: S311
                kinds = list(CHANCES) if options.all_kinds else lot.choices(list(CHANCES), list(CHANCES.values()))
                for kind in kinds:
                    prompt = prompter.prompt(kind, sample, reference)
                    out.write(json.dumps(record(sample, reference, kind, prompt)) + "\n")
                    counted[folder.name] += 1
    print(dict(counted))


if __name__ == "__main__":
    main()
