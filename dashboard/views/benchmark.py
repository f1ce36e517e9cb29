"""Tables about a sample set. Manifests are untrusted files, so invalid entries are skipped."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxbench.bench.types import Sample

Cells = dict[str, object]
Manifest = Mapping[str, Any]
Help = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInfo:
    """A sample set, with its manifest if it is on this machine."""

    samples: str
    """Name of the set on all pages, with the start of the digest if two sets share a name."""
    name: str
    digest: str
    manifest: Manifest | None
    """Manifest of the set; None if the home folder does not contain the set."""

    @property
    def limited(self) -> bool:
        """Whether the set's runs cover only a part of it."""
        return self.samples.startswith(f"{self.name}[")


def all_sets(home: Mapping[str, tuple[str, Manifest]], stored: Iterable[tuple[str, str, str]]) -> list[SetInfo]:
    """Return the sets in `stored` (displayed name, name, digest), then the other sets of the home folder, by name."""
    manifests = {(name, digest): manifest for name, (digest, manifest) in home.items()}
    stored = list(stored)
    used_names, used_sets = {samples for samples, *_ in stored}, {(name, digest) for _, name, digest in stored}
    unused = [
        (f"{name} {digest[:12]}" if name in used_names else name, name, digest)
        for name, digest in sorted(manifests.keys() - used_sets)
    ]
    return [
        SetInfo(samples=samples, name=name, digest=digest, manifest=manifests.get((name, digest)))
        for samples, name, digest in [*stored, *unused]
    ]


def entries(manifest: Manifest) -> dict[str, Manifest]:
    """Return the manifest's valid entries for repositories, by repository name."""
    return {
        str(name): entry for name, entry in _mapping(manifest.get("repositories")).items() if isinstance(entry, Mapping)
    }


def headline(sample_set: SetInfo, samples: int, runs: int) -> str:
    """Return a text about a set: its numbers of samples, repositories and runs, and its digest."""
    repos = len(entries(sample_set.manifest or {}))
    of_repos = f"{repos} {'repository' if repos == 1 else 'repositories'}"
    counts = (f"{count} {noun}{'s' * (count != 1)}" for count, noun in ((samples, "sample"), (runs, "stored run")))
    return f"{f' from {of_repos}, '.join(counts)}. Digest {sample_set.digest[:12]}."


def about(manifest: Manifest) -> list[Cells]:
    """Return facts about the set as a whole, such as how it was built."""
    facts: dict[str, object] = {
        "made": "imported" if manifest.get("imported_from") else "built here",
        "kind": manifest.get("kind"),
        "format": manifest.get("imported_from"),
        "prompts": manifest.get("prompts"),
        "rebuilt on releases": "yes" if manifest.get("rebuilt") else None,
        "seed": manifest.get("seed"),
        "most samples per repository": manifest.get("per_repo"),
        "ctxbench": manifest.get("ctxbench"),
        "Python": manifest.get("python"),
        **_mapping(manifest.get("parsers")),
    }
    rows: list[Cells] = [
        {"what": name, "value": str(value)} for name, value in facts.items() if value not in (None, "")
    ]
    for listed in _listed(manifest.get("sources")):
        source = _mapping(listed)
        rows.append({"what": "file", "value": f"{source.get('source')} ({source.get('rows')} rows)"})
    return rows


def remarks(manifest: Manifest) -> list[str]:
    """Return the manifest's remarks, then a remark per repository with samples that only clock-reading tests judge."""
    only = {repo: _count(entry, "kept_clocks_only") or 0 for repo, entry in entries(manifest).items()}
    return [
        *(str(remark) for remark in _listed(manifest.get("remarks"))),
        *(
            f"{repo}: {count} of its samples are judged only by tests that read a clock."
            for repo, count in only.items()
            if count
        ),
    ]


REPO_HELP: Mapping[str, str] = {
    "repository": "The repository's name; sample ids begin with it.",
    "language": "Language of the repository's samples.",
    "version": "Fetched version or commit.",
    "source": "Source of the fetched copy.",
    "licence": "Licence in the repository's manifest.",
    "files": "Source files that ctxbench read; strategies can search them.",
    "lines": "Lines in the source files.",
    "samples": "Samples of the set from this repository.",
    "of": "Usable lines or candidate functions from which the samples were chosen.",
    "snapshot": "Start of the SHA-256 of the files that samples were cut from; empty without these files.",
}


def repositories(manifest: Manifest, samples: Sequence[Sample] = ()) -> list[Cells]:
    """Return one row per repository of the set."""
    counted = Counter(sample.repo for sample in samples)
    return [
        {
            "repository": repo,
            "language": _text(entry, "language"),
            "version": _text(entry, "version"),
            "source": _text(entry, "source"),
            "licence": _text(entry, "license"),
            "files": _count(entry, "files"),
            "lines": _count(entry, "lines"),
            "samples": counted[repo] if samples else _count(entry, "kept"),
            "of": _first(entry, "usable", "candidates", "tasks"),
            "snapshot": _text(entry, "snapshot")[:12],
        }
        for repo, entry in entries(manifest).items()
    ]


KIND_HELP: Mapping[str, str] = {
    "kind": "line: the rest of a line, or the next line; function: a whole body, from signature and docstring.",
    "samples": "Number of samples.",
    "share %": "Share of all samples, in percent.",
    "first use %": "Share of samples that are the first use of a name in their file, in percent; the name's "
    "import is blanked.",
}


def kinds(samples: Sequence[Sample]) -> list[Cells]:
    """Return one row per language, kind and level: number and share of samples, and share of first uses of a name."""
    alike: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
    for sample in samples:
        alike[sample.language, sample.kind, sample.subkind].append(sample)
    return [
        {
            "language": str(language),
            "kind": str(kind),
            "level": level,
            "samples": len(of),
            "share %": percent(len(of), len(samples)),
            "first use %": percent(sum(map(bool, (sample.masked for sample in of))), len(of))
            if kind == "line"
            else None,
        }
        for (language, kind, level), of in sorted(alike.items())
    ]


MUTANTS_HELP: Mapping[str, str] = {
    "repository": "Repository whose functions became samples here.",
    "faults": "Faulty versions of the sampled functions, two per function; the tests were chosen without them.",
    "noticed by all": "Faults noticed by at least one of the tests that run the function (at most 150).",
    "noticed": "Faults noticed by the sample's own tests (at most 20); a completion with such a fault scores 0.",
    "kill rate %": "Share of the faults noticed by all tests that the sample's own tests also notice, in percent.",
    "all faults %": "Share of all faults that are noticed, in percent; some faults have no effect that a test "
    "can notice.",
}


def mutants(manifest: Manifest) -> list[Cells]:
    """Return one row per repository whose tests were tried with injected faults (mutants); if several, also a total."""
    rows: list[tuple[str, tuple[int, int, int]]] = []
    for repo, entry in entries(manifest).items():
        entry_mutants = _mapping(entry.get("mutants"))
        tried, killed, by_all = (_count(entry_mutants, key) for key in ("tried", "killed", "killed_by_all"))
        if tried and killed is not None and by_all is not None:
            rows.append((repo, (tried, killed, by_all)))
    if len(rows) > 1:
        tried, killed, by_all = (sum(counts) for counts in zip(*(counts for _, counts in rows), strict=True))
        rows.append(("all", (tried, killed, by_all)))
    return [
        {
            "repository": repo,
            "faults": tried,
            "noticed by all": by_all,
            "noticed": killed,
            "kill rate %": percent(killed, by_all),
            "all faults %": percent(killed, tried),
        }
        for repo, (tried, killed, by_all) in rows
    ]


def percent(part: int, whole: int) -> float | None:
    """Return a share in whole percent, or with one decimal if `whole` is at least 1,000; None if `whole` is 0."""
    return None if not whole else round(100 * part / whole, 0 if whole < 1000 else 1)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _text(entry: Manifest, key: str) -> str:
    value = entry.get(key)
    return "" if value is None else str(value)


def _count(entry: Manifest, key: str) -> int | None:
    value = entry.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _first(entry: Manifest, *keys: str) -> int | None:
    return next((count for key in keys if (count := _count(entry, key)) is not None), None)


STAGES: Mapping[str, str] = {
    "left_out": "files not read",
    "skipped_as_targets": "files without targets",
    "drops": "lines or functions",
    "tests_dropped": "tests",
    "unusable": "records of the benchmark",
}
"""Key in a manifest -> what it counts."""

DROP_HELP: Mapping[str, str] = {
    "what": "What was excluded.",
    "reason": "Reason in the set's manifest; docs/repository.md explains each reason.",
    "count": "Number in all repositories.",
    "repositories": "Number of repositories affected.",
}


def drop_rows(manifest: Manifest) -> list[Cells]:
    """Return one row per kind of excluded item and reason, with counts; the most frequent reason of a kind first."""
    count: Counter[tuple[str, str]] = Counter()
    repos: Counter[tuple[str, str]] = Counter()
    for stage, reason, number in _counted(manifest):
        count[stage, reason] += number
        repos[stage, reason] += 1
    order = list(STAGES.values())
    return [
        {
            "what": stage,
            "reason": reason,
            "count": number,
            "repositories": repos[stage, reason] if stage != STAGES["unusable"] else None,
        }
        for (stage, reason), number in sorted(
            count.items(), key=lambda item: (order.index(item[0][0]), -item[1], item[0][1])
        )
    ]


def _counted(manifest: Manifest) -> Iterator[tuple[str, str, int]]:
    for entry in entries(manifest).values():
        for key in ("left_out", "skipped_as_targets", "drops", "tests_dropped"):
            # An import counts its unusable records once, for the whole set.
            if key == "drops" and isinstance(manifest.get("unusable"), Mapping):
                continue
            yield from _of(STAGES[key], entry.get(key))
        left_out = {name.removeprefix("left_out_"): n for name, n in entry.items() if name.startswith("left_out_")}
        yield from _of(STAGES["skipped_as_targets"], left_out)
    yield from _of(STAGES["unusable"], manifest.get("unusable"))


def _of(stage: str, counts: object) -> Iterator[tuple[str, str, int]]:
    if isinstance(counts, Mapping):
        for reason, number in counts.items():
            if isinstance(number, int) and number > 0:
                yield stage, str(reason), number
