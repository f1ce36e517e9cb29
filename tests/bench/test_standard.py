"""Standard sets follow the rules of docs/standard-set.md."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxbench.bench import standard
from ctxbench.bench.errors import UnknownName
from ctxbench.bench.home import Home
from ctxbench.bench.languages.base import Language
from ctxbench.bench.repositories.manifest import RepoManifest
from ctxbench.bench.repositories.snapshot import Snapshot
from ctxbench.bench.repositories.sources import DebianSource, GitSource, PypiSource
from ctxbench.bench.samples import SampleSet
from scripts import standard_set_page as page
from tests.helpers.cli import assert_fault, run_cli
from tests.helpers.sets import make_set

WHOLE, LITE = standard.load("ctxbench-2"), standard.load("ctxbench-2-lite")
PERMISSIVE = {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC"}
PAGE = page.PAGE.read_text(encoding="utf-8")


def repository_rows() -> list[dict[str, str]]:
    lines = page.FILE.read_text(encoding="utf-8").partition("<!-- table")[2].partition("<!-- end")[0].splitlines()[1:]
    heading, _, *rest = ([cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines)
    return [dict(zip(heading, row, strict=True)) for row in rest]


def test_each_repository_follows_the_rules_of_the_page() -> None:
    table = repository_rows()
    assert [row["repository"] for row in table] == list(WHOLE.domains)
    for row, repository in zip(table, WHOLE.manifests, strict=True):
        facts = (repository.version, str(repository.released), str(repository.language), repository.license)
        assert facts == (row["version"], row["released"], row["language"].lower(), row["licence"]), row
        assert row["domain"] == WHOLE.domains[row["repository"]].replace("-", " ")
        count = {column: int(row[column].replace(",", "")) for column in ("lines", "code", "usable lines")}
        years = range(2025, 2027) if repository.language == "python" else range(2015, 2023)
        assert 1_000 <= count["code"] <= min(60_000, count["lines"]) and count["usable lines"] >= 50, row
        assert repository.released is not None and repository.released.year in years, row
    larger = {row["repository"] for row in table if int(row["lines"].replace(",", "")) > 60_000}
    named = PAGE.partition("seven repositories have more than 60,000: ")[2].partition(".")[0]
    assert larger == set(re.findall(r"[\w-]+", named)) - {"and"} and len(larger) == 7
    codes = sorted(int(row["code"].replace(",", "")) for row in table)
    assert f"{codes[0]:,} to {codes[-1]:,}" in PAGE
    assert PAGE.partition(page.BEGIN)[2].startswith(page.domains_table())


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("python", '"""Two\nlines."""\n\n# none\nx = 1  # one\ny = (\n    # none\n    2\n)\n', 6),
        ("java", "/** None. */\n\n// none\nclass A { // one\n  /* none */\n  int b = 1;\n}\n", 3),
    ],
)
def test_code_lines_exclude_comments_blank_lines_and_tests(language: str, text: str, count: int) -> None:
    spoken = Language(language)
    texts = {f"a{spoken.suffix}": text, f"tests/a{spoken.suffix}": text, f"vendor/a{spoken.suffix}": text}
    snapshot = Snapshot(name="a", language=spoken, digest="", texts=texts, dropped={})
    assert page.code_lines(snapshot) == count


def test_sets_have_many_repositories_with_few_samples_each() -> None:
    languages = Counter(str(repository.language) for repository in WHOLE.manifests)
    assert languages["python"] >= 40 and languages["java"] >= 16 and max(WHOLE.per_repo.values()) <= 25
    assert max(Counter(WHOLE.domains.values()).values()) <= 5
    assert all(repository.license in PERMISSIVE for repository in WHOLE.manifests)
    assert not any(repository.codereval for repository in WHOLE.manifests)


def test_python_has_one_pinned_source_and_java_two() -> None:
    for repository in WHOLE.manifests:
        kinds = [type(source) for source in repository.sources]
        assert kinds == ([PypiSource] if repository.language == "python" else [DebianSource, GitSource]), (
            repository.name
        )


def test_function_samples_come_from_repositories_with_tests() -> None:
    assert WHOLE.manifests_of("line") == WHOLE.manifests
    assert WHOLE.tested <= WHOLE.domains.keys() and LITE.tested == WHOLE.tested & LITE.domains.keys()
    assert [repository.name for repository in WHOLE.manifests_of("function")] == [
        name for name in WHOLE.domains if name in WHOLE.tested
    ]
    languages = Counter(str(repository.language) for repository in WHOLE.manifests_of("function"))
    assert languages["python"] >= 24 and languages["java"] >= 6
    for repository in WHOLE.manifests_of("function"):
        assert repository.tests is not None, repository.name
        # Every machine installs the same versions. The names of Java's jars contain them.
        pins = repository.tests.lock or repository.tests.requirements
        assert repository.language == "java" or (pins and all("==" in pin for pin in pins)), repository.name


def test_function_samples_are_built_by_the_rules_of_the_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[list[str], dict[str, Any]]] = []

    def build_functions(manifests: Sequence[RepoManifest], home: Home, name: str, **options: Any) -> SampleSet:
        calls.append(([manifest.name for manifest in manifests], options))
        return make_set(home, name=name)

    monkeypatch.setattr("ctxbench.bench.functions.build.build", build_functions)
    monkeypatch.setattr("ctxbench.harness.cli.samples.opened_sandbox", lambda *_: None)
    rule = {"per_repo": {"function": 3}, "seed": 7, "tested": frozenset({"tinydb", "mistune", "jheaps"})}
    command = ("samples", "build", "mine", "--set", "ctxbench-2", "--kind", "function", "--home", str(tmp_path))
    digest = make_set(Home(tmp_path), name="equal").digest
    for digests, code, outcome in (
        ({"function": "0" * 64}, 1, "the samples differ from the published"),
        ({"function": digest}, 0, "equal to the published samples"),
        ({}, 0, "no function samples of ctxbench-2 are published yet"),
    ):
        members = replace(WHOLE, **rule, digests=digests)
        monkeypatch.setattr(standard, "load", lambda _, members=members: members)
        result = run_cli(*command)
        assert result.code == code and outcome in result.err, result.err
        assert ("of these are not published, such as shop0/" in result.err) == bool(code), result.err
    names, options = calls[-1]
    assert names == ["mistune", "tinydb", "jheaps"] and (options["per_repo"], options["seed"]) == (3, 7)
    assert (run_cli(*command, "--language", "java").code, calls[-1][0]) == (0, ["jheaps"])


def test_lite_contains_the_first_repositories_of_each_language() -> None:
    assert Counter(str(repository.language) for repository in LITE.manifests) == {"python": 12, "java": 6}
    for language in ("python", "java"):
        whole, lite = (
            [repository.name for repository in members.manifests if repository.language == language]
            for members in (WHOLE, LITE)
        )
        assert whole[: len(lite)] == lite


def test_standard_sets_are_found_by_name() -> None:
    assert standard.names() == ("ctxbench-2", "ctxbench-2-lite")
    with pytest.raises(UnknownName, match="did you mean ctxbench-2"):
        standard.load("ctxbench2")


def test_the_page_states_every_digest() -> None:
    stated = re.findall(r"^\| `([\w-]+)`, (\w+)s \| `([0-9a-f]{64})` \|$", PAGE, re.MULTILINE)
    assert stated == [
        (members.name, kind, digest) for members in (WHOLE, LITE) for kind, digest in members.digests.items()
    ]
    tested = Counter(str(repository.language) for repository in WHOLE.manifests_of("function"))
    counts = f"{tested.total()} repositories with tests ({tested['python']} in Python and {tested['java']} in Java)"
    assert counts in " ".join(PAGE.split())


def test_options_fixed_by_a_standard_set_are_refused() -> None:
    for options, refused in (
        (["--set", "ctxbench-2", "--repo", "fasta2a"], "--repo and --set are both given or both missing"),
        ([], "--repo and --set are both given or both missing"),
        (["--set", "ctxbench-2", "--seed", "1"], "--seed needs --repo"),
        (["--set", "ctxbench-2", "--per-repo", "25"], "--per-repo needs --repo"),
    ):
        result = run_cli("samples", "build", "mine", *options)
        assert result.code == 2 and refused in result.err
    assert_fault(run_cli("samples", "build", "mine", "--set", "ctxbench-0"), "no standard set is called 'ctxbench-0'")
    listed = run_cli("repo", "list", "--set", "ctxbench-2-lite").out
    assert "\nmistune " in listed and "\njoda-time " in listed and "petl" not in listed
