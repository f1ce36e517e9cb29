"""Manifests: all keys of a valid manifest are read, and all faults of an invalid one are reported at once."""

import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from ctxbench.bench import standard
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.python import PYTHON
from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import ManifestFault, RepoManifest, TestSuite
from ctxbench.bench.repositories.sources import DebianSource, GitSource, LocalSource, PypiSource

SHA = "ab" * 32
HEAD = 'name = "demo"\nlanguage = "python"\nlicense = "MIT"\nversion = "1.0"\n'
PYPI = f'[[source]]\nkind = "pypi"\nname = "demo"\nsha256 = "{SHA}"\n'


def write(folder: Path, text: str, name: str = "demo.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ManifestFault) as caught:
        manifest.load(write(folder, text))
    return [str(fault) for fault in caught.value.faults]


def test_every_key_is_read(tmp_path: Path) -> None:
    text = (
        HEAD
        + 'released = "2024-06-01"\n'
        + 'source_dir = "src"\nexclude = ["docs/*", "**/_vendor/*"]\nsets = ["mine"]\ncodereval = ["owner/os-demo"]\n'
        + PYPI
        + f'[[source]]\nkind = "git"\nurl = "https://example.org/x"\ncommit = "{"c" * 40}"\n'
        + f'[[source]]\nkind = "debian"\npackage = "libdemo"\nsha256 = "{SHA}"\n'
        + '[[source]]\nkind = "local"\npath = "../copy"\n'
        + '[tests]\nrequirements = ["attrs<25"]\npythonpath = "src"\npaths = ["tests"]\n'
        + 'arguments = ["-o", "addopts="]\ndeselect = ["tests/a.py::b"]\nnotes = "slow"\n'
        + 'added = "ours"\nwheel = false\n'
    )
    (tmp_path / "ours").mkdir()
    found = manifest.load(write(tmp_path, text))
    assert (found.name, found.language, found.license, found.version) == ("demo", PYTHON, "MIT", "1.0")
    assert (found.released, found.source_dir, found.sets) == (date(2024, 6, 1), "src", ("mine",))
    assert found.sources == (
        PypiSource(name="demo", version="1.0", sha256=SHA),
        GitSource(url="https://example.org/x", commit="c" * 40),
        DebianSource(package="libdemo", version="1.0", sha256=SHA),
        LocalSource(path=tmp_path.parent / "copy"),
    )
    assert found.tests is not None and found.tests.requirements == ("attrs<25",)
    assert found.tests.arguments == ("-o", "addopts=") and found.tests.deselect == ("tests/a.py::b",)
    assert found.codereval == ("owner/os-demo",) and found.tests.added == tmp_path / "ours" and not found.tests.wheel
    excluded = [p for p in ("docs/a/b.py", "_vendor/x.py", "a/_vendor/x.py", "src/x.py") if found.excludes(p)]
    assert excluded == ["docs/a/b.py", "_vendor/x.py", "a/_vendor/x.py"]


WRONG = [
    (HEAD.replace("demo", "other") + PYPI, "name", "rename the file, or correct `name`"),
    (HEAD.replace("demo", "De/mo") + PYPI, "name", "file's name"),
    (HEAD.replace("python", "rust") + PYPI, "language", '"java" or "python"'),
    (HEAD.replace("MIT", "see LICENSE") + PYPI, "license", "SPDX"),
    (HEAD.replace('"1.0"', "1.0") + PYPI, "version", "version of every source"),
    (HEAD.replace("1.0", "../1.0") + PYPI, "version", "version of every source"),
    (HEAD.replace('license = "MIT"\n', "") + PYPI, "license: is missing", "SPDX"),
    (HEAD.replace("license", "licence") + PYPI, "licence: is not a known key", "did you mean 'license'"),
    (HEAD + 'released = "2024-02-30"\n' + PYPI, "released: '2024-02-30' is not a date", '"2024-06-01"'),
    (HEAD + 'released = "20240601"\n' + PYPI, "released: '20240601' is not a date", '"2024-06-01"'),
    (HEAD + "released = 2024-06-01\n" + PYPI, "released", "in quotes"),
    (HEAD, "source: is missing", "[[source]]"),
    (HEAD + "source = []\n", "source", "at least one [[source]]"),
    (HEAD + 'source = "git"\n', "source", "[[source]]"),
    (HEAD + 'source_dir = "/src"\n' + PYPI, "source_dir", "inside the repository"),
    (HEAD + 'source_dir = "a/../../b"\n' + PYPI, "source_dir", "inside the repository"),
    (HEAD + 'exclude = "docs/*"\n' + PYPI, "exclude", "list of globs"),
    (HEAD + 'exclude = ["../x"]\n' + PYPI, "exclude[1]", "list of globs"),
    (HEAD + 'sets = ["Quick start"]\n' + PYPI, "sets[1]", "list of set names"),
    (HEAD + PYPI + "\n[tests]\nrequirement = []\n", "tests.requirement", "did you mean 'requirements'"),
    (HEAD + PYPI + '\n[tests]\npaths = ["../x"]\n', "tests.paths[1]", "list of folders"),
    (HEAD + PYPI + '\n[tests]\nadded = "ours"\n', "tests.added: there is no folder", "relative to the manifest"),
    (HEAD.replace("python", "java") + PYPI + '\n[tests]\nadded = "."\n', "tests.added", "leave `added` out"),
    (HEAD + 'codereval = ["a b"]\n' + PYPI, "codereval[1]: 'a b' is not", "a list of projects"),
    (HEAD + PYPI.replace('kind = "pypi"', 'kind = "svn"'), "source[1].kind: 'svn'", "git, pypi, debian, local"),
    (HEAD + PYPI.replace('kind = "pypi"\n', ""), "source[1].kind: is missing", "git, pypi, debian, local"),
    (HEAD + PYPI.replace(SHA, SHA[:-1]), "source[1].sha256", "sha256sum"),
    (HEAD + PYPI.replace(SHA, SHA.upper()), "source[1].sha256", "sha256sum"),
    (HEAD + PYPI.replace("sha256", "sha"), "source[1].sha256: is missing", "sha256sum"),
    (HEAD + PYPI.replace("sha256", "sha25"), "source[1].sha25: is not a known key", "did you mean 'sha256'"),
    (HEAD + PYPI + 'version = "2.0"\n', "source[1].version", "leave `version` out of the source"),
    (HEAD + PYPI.replace('"demo"', '"--index-url"'), "source[1].name", "package index"),
    (
        HEAD + '[[source]]\nkind = "git"\nurl = "https://example.org/x"\ncommit = "v1.0"\n',
        "source[1].commit: 'v1.0' is not a full commit",
        "git ls-remote URL REF",
    ),
    (HEAD + f'[[source]]\nkind = "git"\nurl = "ext::sh -c x"\ncommit = "{"c" * 40}"\n', "source[1].url", "https"),
    (HEAD + f'[[source]]\nkind = "git"\nurl = "--upload-pack=x"\ncommit = "{"c" * 40}"\n', "source[1].url", "https"),
    (
        HEAD + f'[[source]]\nkind = "git"\nurl = "https://me:secret@example.org/x"\ncommit = "{"c" * 40}"\n',
        "source[1].url",
        "without a password",
    ),
    (HEAD + f'[[source]]\nkind = "debian"\npackage = "-x"\nsha256 = "{SHA}"\n', "source[1].package", "showsrc"),
    (HEAD + '[[source]]\nkind = "local"\n', "source[1].path: is missing", "relative to the manifest"),
    (
        HEAD + '[[source]]\nkind = "local"\npath = ""\n',
        "source[1].path: '' is blank",
        "relative to the manifest",
    ),
    (HEAD + '[[source]]\nkind = "local"\npath = 1\n', "source[1].path", "relative to the manifest"),
    (HEAD + PYPI + '\n[tests]\nadded = " "\n', "tests.added: ' ' is blank", "relative to the manifest"),
    (HEAD + PYPI + '\n[tests]\npaths = [""]\n', "tests.paths[1]: '' is not a path", "list of folders"),
    (HEAD + 'source = ["x"]\n', "source[1]", "[[source]]"),
    (HEAD + "tests = 1\n" + PYPI, "tests: is not a table", "[tests]"),
    (HEAD + "source_dir = inf\n" + PYPI, "source_dir", "inside the repository"),
    ("name = \n", "is not valid TOML", "repo sample"),
]


@pytest.mark.parametrize(("text", "what", "cure"), WRONG, ids=[str(case[1]) for case in WRONG])
def test_a_fault_names_file_key_and_fix(tmp_path: Path, text: str, what: str, cure: str) -> None:
    found = faults(tmp_path, text)
    assert [line for line in found if what in line and cure in line and "demo.toml: " in line], found


def test_all_faults_are_reported_at_once_with_one_line_each(tmp_path: Path) -> None:
    text = (
        'nam = "demo"\nlanguage = "c"\nversion = "1"\n[[source]]\nkind = "git"\nurl = "x"\ncommit = "main"\n'
        '[[source]]\nkind = "hg"\n[[source]]\nkind = "local"\n'
    )
    found = faults(tmp_path, text)
    keys = [re.sub(r"^.*demo\.toml: ([\w\[\].]+):.*$", r"\1", line) for line in found]
    assert sorted(keys) == sorted(
        ["name", "nam", "language", "license", "source[1].url", "source[1].commit", "source[2].kind", "source[3].path"]
    )
    with pytest.raises(ManifestFault) as caught:
        manifest.load(str(tmp_path / "demo.toml"))
    assert str(caught.value).count(" | ") == len(found) - 1 and "\n" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.faults == caught.value.faults and str(again) == str(caught.value)


def test_an_unreadable_manifest_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(InputFault, match="no such file"):
        manifest.load(str(tmp_path / "none.toml"))
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(InputFault, match="not UTF-8"):
        manifest.load(str(tmp_path / "latin.toml"))


@pytest.mark.parametrize("name", manifest.builtin_names())
def test_shipped_manifests_are_complete(name: str) -> None:
    found = manifest.load(name)
    assert found.name == name and found.sources and found.released
    assert found.sets or name in standard.load("ctxbench-2").domains


def test_shipped_sets_have_the_expected_repositories() -> None:
    assert [each.name for each in manifest.in_set("java")] == ["commons-codec", "commons-lang3"]
    execution = manifest.in_set("execution")
    assert len(execution) == 12 and all(each.tests for each in execution)


@pytest.mark.parametrize(
    ("ask", "name", "near"), [(manifest.load, "fasta2", "fasta2a"), (manifest.in_set, "recnt", "recent")]
)
def test_unknown_names_suggest_the_nearest(ask: Callable[[str], object], name: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        ask(name)
    assert f"did you mean {near}" in str(caught.value) and "ctxbench repo list" in str(caught.value)


@pytest.mark.parametrize("name", manifest.builtin_names())
def test_shipped_suites_pin_their_versions(name: str) -> None:
    suite = manifest.load(name).tests
    if suite is None or manifest.load(name).language != PYTHON:
        return
    pinned = {re.split("==", pin)[0] for pin in (*suite.lock, *suite.requirements) if "==" in pin}
    assert {"coverage", "pytest", "pluggy"} <= pinned


PLAIN = RepoManifest(name="demo", language=PYTHON, license="MIT", version="1.0", sources=())
MANIFESTS = [
    replace(
        PLAIN,
        sources=(PypiSource(name="Demo", version="1.0", sha256=SHA), LocalSource(path=Path('/x/"a" b'), sha256=SHA)),
        released=date(2024, 5, 6),
        exclude=("**/_vendor/*",),
        tests=TestSuite(
            requirements=tuple(f'distribution-number-{number}; python_version < "3.1{number}"' for number in range(9)),
            pythonpath="src",
            paths=("tests",),
            arguments=("-o", "python_files=*.py"),
            deselect=("tests/test_ü.py",),
            wheel=False,
            lock=("distribution-number-1==1.0", "pytest==9.0.2"),
        ),
    ),
    replace(
        PLAIN,
        language=JAVA,
        source_dir="core",
        sources=(
            DebianSource(package="demo", version="1.0", sha256=SHA),
            GitSource(url="https://example.org/x", commit="b" * 40),
        ),
        sets=("java",),
        codereval=("owner/demo", "folder"),
        tests=TestSuite(
            requirements=("liba-java",), jars=("a.jar",), encoding="ISO-8859-1", release="11", notes='slow "ones"'
        ),
    ),
]


@pytest.mark.parametrize("adopted", MANIFESTS)
def test_a_written_manifest_is_read_back_unchanged(adopted: RepoManifest, tmp_path: Path) -> None:
    text = manifest.text_of(adopted, ["seen"], ["a doubt\nname = 'evil'", "word " * 60], None)
    assert manifest.parse(text, tmp_path / "demo.toml", "demo.toml") == adopted
    assert "# To check:\n# - a doubt name = 'evil'\n# - word" in text
    address = f"git+https://example.org/{'some-where/' * 12}x"
    assert address in manifest.text_of(adopted, [f"Written by {address}, by a person."], [], None)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize("name", manifest.builtin_names())
def test_a_shipped_manifest_is_written_completely(name: str) -> None:
    shipped = manifest.load(name)
    assert manifest.parse(manifest.text_of(shipped), Path(f"/elsewhere/{name}.toml"), name) == shipped


def test_tests_that_did_not_run_are_written_as_a_comment(tmp_path: Path) -> None:
    source = replace(PLAIN, sources=(LocalSource(path=tmp_path),))
    tests = TestSuite(requirements=tuple(f"distribution-number-{number}" for number in range(9)), paths=("tests",))
    text = manifest.text_of(source, [], [], tests)
    assert manifest.parse(text, tmp_path / "demo.toml", "").tests is None
    head, _, table = text.partition("# [tests]")
    uncovered = head + "\n".join(line.removeprefix("# ") for line in f"# [tests]{table}".splitlines())
    assert manifest.parse(uncovered, tmp_path / "demo.toml", "").tests == tests
