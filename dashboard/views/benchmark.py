"""Tables about a sample set. Manifests are untrusted files, so invalid entries are skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from ctxbench.bench.anatomy import Measured
from ctxbench.harness.store.samples import SampleCount

Cells = dict[str, object]
Manifest = Mapping[str, Any]
Help = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInfo:
    """A sample set and its data on this machine."""

    samples: str
    """Name of the set on all pages, with the start of the digest if two sets share a name."""
    name: str
    digest: str
    manifest: Manifest | None
    """None if the home folder does not contain the set."""

    @property
    def limited(self) -> bool:
        """Whether the set's runs cover only a part of it."""
        return self.samples.startswith(f"{self.name}[")


def all_sets(home: Mapping[str, tuple[str, Manifest]], stored: Iterable[tuple[str, str, str]]) -> list[SetInfo]:
    """Return all sets in the store or the home folder, sets with stored runs first."""
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
    """Return repository -> its entry in the manifest."""
    return {
        str(name): entry for name, entry in _mapping(manifest.get("repositories")).items() if isinstance(entry, Mapping)
    }


def headline(sample_set: SetInfo, samples: int, runs: int) -> str:
    """Return one sentence about a set: its numbers of samples, repositories and runs."""
    repos = len(entries(sample_set.manifest or {}))
    parts = [(samples, "sample"), (repos, "repositor"), (runs, "stored run")]
    counts = [f"{count} {word}{_ending(word, count)}" for count, word in parts]
    return f"{counts[0]} from {counts[1]}, {counts[2]}. Digest {sample_set.digest[:12]}."


def _ending(word: str, count: int) -> str:
    singular, plural = ("y", "ies") if word.endswith("repositor") else ("", "s")
    return singular if count == 1 else plural


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
    """Return remarks that readers of the set's numbers must know."""
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
    "language": "Language of its samples.",
    "version": "Fetched version or commit.",
    "source": "Source of the fetched copy.",
    "licence": "Licence in the repository's manifest.",
    "files": "Source files that were read; strategies can search them.",
    "lines": "Lines in these files.",
    "samples": "Samples of the set from this repository.",
    "of": "Usable lines, or candidate functions, that the samples were chosen from.",
    "snapshot": "Start of the SHA-256 of the files that samples were cut from; empty without these files.",
}


def repositories(manifest: Manifest, measured: Sequence[Measured] = ()) -> list[Cells]:
    """Return one row per repository of the set."""
    counted = Counter(sample.repo for sample in measured)
    return [
        {
            "repository": repo,
            "language": _text(entry, "language"),
            "version": _text(entry, "version"),
            "source": _text(entry, "source"),
            "licence": _text(entry, "license"),
            "files": _count(entry, "files"),
            "lines": _count(entry, "lines"),
            "samples": counted[repo] if measured else _count(entry, "kept"),
            "of": _first(entry, "usable", "candidates", "tasks"),
            "snapshot": _text(entry, "snapshot")[:12],
        }
        for repo, entry in entries(manifest).items()
    ]


def stored_repositories(stored: Sequence[SampleCount]) -> list[Cells]:
    """Return one row per repository, for a set that is only in the store."""
    counts: Counter[tuple[str, str]] = Counter()
    for group in stored:
        counts[group.repo, group.language] += group.samples
    return [{"repository": repo, "language": language, "samples": count} for (repo, language), count in counts.items()]


KIND_HELP: Mapping[str, str] = {
    "kind": "line: the rest of a line, or the next line; function: a whole body, from signature and docstring.",
    "samples": "Number of samples.",
    "share %": "Share of all samples, in percent.",
    "first use %": "Share of samples that are the first use of a name in their file, in percent; its import is "
    "blanked.",
}


def kinds(measured: Sequence[Measured]) -> list[Cells]:
    """Return one row per language, kind and level, with the number of samples and of masked imports."""
    first: Counter[tuple[str, str, str]] = Counter()
    counted = Counter((sample.language, sample.kind, sample.level) for sample in measured)
    for sample in measured:
        first[sample.language, sample.kind, sample.level] += sample.masked
    return _kinds(counted, {key: first[key] if key[1] == "line" else None for key in counted})


def stored_kinds(stored: Sequence[SampleCount]) -> list[Cells]:
    """Return one row per language, kind and level, for a set that is only in the store."""
    counted: Counter[tuple[str, str, str]] = Counter()
    for group in stored:
        counted[group.language, group.kind, group.level] += group.samples
    return _kinds(counted, {})


def _kinds(counted: Counter[tuple[str, str, str]], first: Mapping[tuple[str, str, str], int | None]) -> list[Cells]:
    rows: list[Cells] = []
    for (language, kind, level), count in sorted(counted.items()):
        masked = first.get((language, kind, level))
        rows.append(
            {
                "language": language,
                "kind": kind,
                "level": level,
                "samples": count,
                "share %": percent(count, counted.total()),
                "first use %": None if masked is None else percent(masked, count),
            }
        )
    return rows


MUTANTS_HELP: Mapping[str, str] = {
    "repository": "Repository whose functions became samples here.",
    "faults": "Faulty versions of its sampled functions, two per function; they were not used to choose tests.",
    "noticed by all": "Faults noticed by at least one of the tests that run the function (at most 150).",
    "noticed": "Faults noticed by the sample's own tests (at most 20); such a completion scores 0.",
    "kill rate %": "Of the faults noticed by all tests, the share noticed by the sample's own tests, in percent.",
    "all faults %": "Share of all faults that are noticed, in percent; some faults have no effect that a test "
    "can notice.",
}


def mutants(manifest: Manifest) -> list[Cells]:
    """Return one row per repository whose tests were tried with injected faults (mutants), and a total."""
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
    """Return a share in percent, with one decimal from 1,000 samples on; None if `whole` is 0."""
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


LENGTHS: Mapping[str, Callable[[Measured], int | None]] = {
    "prefix tokens": lambda sample: sample.prefix_tokens,
    "prefix lines": lambda sample: sample.prefix_lines,
    "target tokens": lambda sample: sample.target_tokens,
    "target lines": lambda sample: sample.target_lines,
    "suffix lines": lambda sample: sample.suffix_lines,
    "names used": lambda sample: sample.uses,
    "tests": lambda sample: sample.tests,
}
LENGTH_HELP: Mapping[str, str] = {
    "what": "The measured length; tokens are ctxcode-1 tokens, as in budgets.",
    "samples": "Samples with this length.",
    "least": "Smallest length.",
    "quarter": "A quarter of the samples are at or below this length.",
    "median": "Half of the samples are at or below this length.",
    "three quarters": "Three quarters of the samples are at or below this length.",
    "most": "Largest length.",
}


def length_summary(measured: Sequence[Measured]) -> list[Cells]:
    """Return the quartiles of each length that is not always 0."""
    rows: list[Cells] = []
    for name, of in LENGTHS.items():
        lengths = sorted(value for sample in measured if (value := of(sample)) is not None)
        if not lengths or lengths[-1] == 0:
            continue
        low, middle, high = quantiles(lengths, n=4, method="inclusive") if len(lengths) > 1 else [lengths[0]] * 3
        rows.append(
            {
                "what": name,
                "samples": len(lengths),
                "least": lengths[0],
                "quarter": round(low),
                "median": round(middle),
                "three quarters": round(high),
                "most": lengths[-1],
            }
        )
    return rows


STAGES: Mapping[str, str] = {
    "left_out": "files not read",
    "skipped_as_targets": "files without targets",
    "drops": "lines or functions",
    "tests_dropped": "tests",
    "unusable": "records of the benchmark",
}
"""Key in a manifest -> what it counts."""

DROP_HELP: Mapping[str, str] = {
    "what": "What was left out.",
    "reason": "Reason in the set's manifest; docs/repository.md explains each reason.",
    "count": "Number in all repositories.",
    "repositories": "Number of repositories affected.",
}


def drops(manifest: Manifest) -> list[Cells]:
    """Return the counts of excluded files, lines or functions by stage, with the most frequent reason first."""
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
