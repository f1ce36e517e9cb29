"""Guesses from a Python project's files about its tests."""

from collections.abc import Mapping

import pytest
from packaging.requirements import Requirement

from ctxbench.bench.adoption.declared import DeclaredRequirements, declared
from ctxbench.bench.adoption.python import (
    SuiteGuess,
    add_missing,
    guess,
    internal_names,
    with_older_pytest,
    with_pytest,
)
from ctxbench.bench.repositories.manifest import TestSuite

PROJECT = '[project]\nname = "demo"\nversion = "1.2"\ndependencies = ["attrs>=20"]\n'
TEST = "def test_it():\n    pass\n"


def guessed(files: Mapping[str, str], *, wheel: bool = True) -> SuiteGuess:
    sources = {path: text for path, text in files.items() if path.endswith(".py")}
    return guess(sources, files, declared(files), wheel=wheel)


def suite(files: Mapping[str, str], *, wheel: bool = True) -> TestSuite:
    tests = guessed(files, wheel=wheel).tests
    assert tests is not None
    return tests


DECLARATIONS = [
    ('[project.optional-dependencies]\ntest = ["freezegun>=1", "pytest-cov"]\nlint = ["ruff", "types-six"]\n', {}),
    ('[dependency-groups]\nbase = ["freezegun>=1"]\ntests = ["pytest", {include-group = "base"}]\n', {}),
    ('[project.optional-dependencies]\nall = ["freezegun>=1"]\ntests = ["demo[all]"]\n', {}),
    ('[tool.hatch.envs.test]\nextra-dependencies = ["freezegun>=1", "coverage[toml]"]\n', {}),
    ("", {"setup.cfg": "[options.extras_require]\ntesting =\n    freezegun>=1  # the clock\n    tox\n"}),
    ("", {"tox.ini": "[testenv]\ndeps =\n    freezegun>=1\n    py311: pytest\ncommands = pytest\n"}),
    ("", {"requirements/base-test.txt": "freezegun>=1\n", "requirements/tests.in": "-r base-test.txt\n-e .\n"}),
    ("", {"PKG-INFO": 'Name: demo\nRequires-Dist: six\nRequires-Dist: freezegun>=1; extra == "test"\n'}),
]


@pytest.mark.parametrize(("table", "more"), DECLARATIONS)
def test_requirements_of_tests_are_read_from_every_kind_of_declaration(table: str, more: Mapping[str, str]) -> None:
    files = {"pyproject.toml": PROJECT + table, "demo.py": "", "tests/test_demo.py": TEST, **more}
    assert suite(files).requirements == ("freezegun>=1",)


def test_poetry_tables_are_read_as_names_without_versions() -> None:
    files = {
        "pyproject.toml": '[tool.poetry]\nname = "demo"\nversion = "3.1"\n[tool.poetry.dependencies]\npython = "^3.9"\n'
        'attrs = "^22.1"\n[tool.poetry.group.test.dependencies]\nfreezegun = {version = "~1.2"}\nsix = "*"\n',
        "tests/test_demo.py": TEST,
        "demo/__init__.py": "",
    }
    read = declared(files)
    assert (read.name, read.version, read.own) == ("demo", "3.1", ("attrs",))
    assert suite(files).requirements == ("freezegun", "six")


READABLE = [
    ("six >=1.2, <2 ; python_version < '4'", "six >=1.2, <2 ; python_version < '4'"),
    ("six[x]==1.*", "six[x]==1.*"),
    ("six (>=1,!=2)", "six (>=1,!=2)"),
    ("six>=~=1.16", "six"),
    ("six[x]>dev; python_version<'4'", "six[x]; python_version<'4'"),
    ("six  1 to 2", "six"),
]


@pytest.mark.parametrize(("text", "requirement"), READABLE)
def test_versions_that_pip_cannot_read_are_left_out(text: str, requirement: str) -> None:
    assert declared({"requirements.txt": f"{text}\n"}).groups["requirements.txt"] == (requirement,)
    Requirement(requirement)


def test_only_development_packages_that_tests_import_are_required() -> None:
    files = {
        "pyproject.toml": PROJECT + '[dependency-groups]\ndev = ["sphinx", "PyYAML>=6", "pytest-xprocess", "black"]\n',
        "demo.py": "",
        "tests/test_demo.py": "import os\nimport attr\nimport yaml\nimport demo\nfrom . import helper\n" + TEST,
        "tests/helper.py": "import xprocess\nimport pytest\n",
    }
    assert suite(files).requirements == ("PyYAML>=6", "pytest-xprocess")


NAMES = [
    ("zope.testing", "from zope.testing import cleanup"),
    ("zope.testing>=5", "import zope.testing.cleanup"),
    ("Flask_SQLAlchemy", "import flask_sqlalchemy"),
    ("ruamel.yaml", "from ruamel import yaml"),
    ("PySocks", "import socks"),
    ("acme.event-bus", "from acme.event_bus import Bus"),
]


@pytest.mark.parametrize(("requirement", "line"), NAMES)
def test_an_import_is_matched_to_a_distribution_by_its_normalized_name(requirement: str, line: str) -> None:
    files = {
        "pyproject.toml": f'[project]\nname = "zope.shop"\n[dependency-groups]\ndev = ["{requirement}", "zope.x"]\n',
        "src/zope/shop/__init__.py": "",
        "src/acme/__init__.py": "",
        "tests/test_shop.py": f"{line}\nimport zope.shop\n{TEST}",
    }
    tests = suite(files)
    assert (tests.requirements, tests.pythonpath) == ((requirement,), "src")


def test_an_undeclared_import_is_required_with_a_doubt() -> None:
    files = {
        "pyproject.toml": PROJECT,
        "demo.py": "",
        "tests/test_demo.py": "import dateutil.parser\ntry:\n    import ujson\nexcept ImportError:\n    ujson = None\n"
        + TEST,
    }
    result = guessed(files)
    assert result.tests is not None and result.tests.requirements == ("python-dateutil",)
    assert result.doubts == ("the tests import packages that no file declares: dateutil",)


def test_a_module_with_a_leading_underscore_needs_no_requirement() -> None:
    files = {
        "pyproject.toml": PROJECT,
        "demo.py": "",
        "tests/test_demo.py": "from _pytest.monkeypatch import MonkeyPatch\nimport _strptime\n" + TEST,
    }
    assert suite(files).requirements == ()


def test_without_a_wheel_the_tests_need_the_projects_requirements() -> None:
    files = {"pyproject.toml": PROJECT, "demo.py": "", "tests/test_demo.py": TEST}
    tests = suite(files, wheel=False)
    assert (tests.requirements, tests.wheel) == (("attrs>=20",), False)


LAYOUTS = [
    (("src/demo/__init__.py", "tests/test_demo.py"), "src", ("tests",)),
    (("demo/__init__.py", "demo/tests/__init__.py", "demo/tests/test_demo.py"), ".", ("demo/tests",)),
    (("demo.py", "test_demo.py"), ".", ("test_demo.py",)),
    (("lib/demo/__init__.py", "test/unit/test_demo.py", "test/test_more.py"), "lib", ("test",)),
    (("demo/__init__.py", "tests/test_demo.py", "docs/test_docs.py", "examples/test_x.py"), ".", ("tests",)),
    (("python/demo/__init__.py", "python/tests/test_demo.py", "tools/gen.py"), "python", ("python/tests",)),
]


@pytest.mark.parametrize(("paths", "root", "places"), LAYOUTS)
def test_the_folders_of_the_package_and_its_tests_are_found(
    paths: tuple[str, ...], root: str, places: tuple[str, ...]
) -> None:
    files = {"pyproject.toml": PROJECT} | {path: TEST if "test_" in path else "" for path in paths}
    tests = suite(files)
    assert (tests.pythonpath, tests.paths) == (root, places)


NAMESPACES = [
    ("acme-tools", "src/acme/tools/__init__.py", "from acme.tools import saw", "src"),
    ("jar.collections", "jar/collections/__init__.py", "from jar import collections", "."),
    ("google-cloud-store", "google/cloud/store/__init__.py", "import google.cloud.store as store", "."),
    ("acme", "lib/acme/tools/__init__.py", "import acme.tools", "lib"),
    ("acme", "src/acme/tools.py", "import acme.tools", "src"),
]


@pytest.mark.parametrize(("name", "path", "line", "root"), NAMESPACES)
def test_a_namespace_package_is_imported_from_above_its_namespace(name: str, path: str, line: str, root: str) -> None:
    files = {"pyproject.toml": f'[project]\nname = "{name}"\n', path: "", "tests/test_demo.py": f"{line}\n{TEST}"}
    tests = suite(files)
    assert (tests.pythonpath, tests.requirements) == (root, ())


PLACES = [
    ('["packages/*/tests"]', ()),
    ('["packages/**/test_b.py", "gone"]', ()),
    ('["packages/a/tests", "packages"]', ("packages",)),
    ('["."]', (".",)),
    ('["gone"]', ("packages/a/tests", "packages/b/tests")),
]


@pytest.mark.parametrize(("places", "paths"), PLACES)
def test_folders_in_globs_are_left_to_pytest(places: str, paths: tuple[str, ...]) -> None:
    files = {"pyproject.toml": f"[tool.pytest.ini_options]\ntestpaths = {places}\n", "demo.py": ""}
    files |= {"packages/a/tests/test_a.py": TEST, "packages/b/tests/deep/test_b.py": "import attr\n" + TEST}
    tests = suite(files)
    assert (tests.paths, tests.arguments, tests.requirements) == (paths, (), ("attrs",))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "pyproject.toml",
            '[tool.pytest.ini_options]\ntestpaths = ["checks"]\naddopts = "--import-mode=importlib --cov"\n',
        ),
        ("pyproject.toml", '[tool.pytest]\ntestpaths = ["checks"]\naddopts = ["--import-mode=importlib"]\n'),
        ("pytest.ini", "[pytest]\ntestpaths = checks\naddopts =\n    --import-mode importlib\n"),
        ("setup.cfg", "[tool:pytest]\ntestpaths = checks\naddopts = --import-mode=importlib\n"),
        ("tox.ini", "[pytest]\ntestpaths = checks\naddopts = --import-mode=importlib\n"),
    ],
)
def test_pytest_settings_say_where_the_tests_are(path: str, text: str) -> None:
    tests = suite({path: text, "demo.py": "", "checks/test_demo.py": TEST, "tests/test_other.py": TEST})
    assert (tests.paths, tests.arguments) == (("checks",), ("--import-mode=importlib",))


def test_a_source_without_tests_is_a_doubt() -> None:
    result = guessed({"pyproject.toml": PROJECT, "demo.py": "", "docs/test_conf.py": TEST, "tests/x.py": TEST})
    assert result.tests is None and "the source contains no test files" in result.doubts[0]


def test_invalid_files_declare_no_requirements() -> None:
    files = {"pyproject.toml": "[", "setup.cfg": "]", "setup.py": "def", "tox.ini": "x", "test_demo.py": "(" + TEST}
    assert suite(files).requirements == ()
    assert declared(files) == DeclaredRequirements()


MENDS = [
    ("ModuleNotFoundError: No module named 'yaml'", ("six", "PyYAML>=6")),
    ("E   ModuleNotFoundError: No module named 'parameterized.test'", ("six", "parameterized")),
    ("ModuleNotFoundError: No module named 'demo.testing'", ("six", "demo.testing")),
    ("E       fixture 'mocker' not found", ("six", "pytest-mock>=3")),
    ("E       fixture 'syrupy' not found", ("six", "pytest-mock>=3", "syrupy")),
    ("async def functions are not natively supported.", ("six", "pytest-asyncio")),
    ("wheels cannot be fetched: No matching distribution found for six", ()),
    ("ModuleNotFoundError: No module named 'demo._speedups'", ("six",)),
    ("ModuleNotFoundError: No module named 'asyncore'", ("six",)),
    ("ModuleNotFoundError: No module named 'zope.event.more'", ("six", "zope.event")),
    ("E   ModuleNotFoundError: No module named 'pytest_codspeed'", ("six",)),
    ("assert 1 == 2", ("six",)),
]


@pytest.mark.parametrize(("message", "requirements"), MENDS)
def test_requirements_are_corrected_from_error_messages(message: str, requirements: tuple[str, ...]) -> None:
    groups = {"dev": ("PyYAML>=6", "pytest-mock>=3", "pytest-cov", "demo.testing", "syrupy")}
    internal = internal_names(["demo/__init__.py", "tests/test_demo.py"])
    tests = add_missing(
        TestSuite(requirements=("six",)), DeclaredRequirements("demo", groups=groups), [message], internal
    )
    assert tests.requirements == requirements


def test_conflicting_requirements_lose_their_versions() -> None:
    tests = TestSuite(requirements=("attrs==19.1", "pytest-mock[x]<2"))
    message = "wheels cannot be fetched: ResolutionImpossible: for help visit a page"
    assert add_missing(tests, DeclaredRequirements(), [message], ()).requirements == ("attrs", "pytest-mock[x]")


def test_a_package_missing_from_the_index_is_not_required_again() -> None:
    messages = ["No module named 'oddity'", "No matching distribution found for oddity"]
    assert add_missing(TestSuite(), DeclaredRequirements(), messages, ()) == TestSuite()


def test_older_pytest_versions_are_tried_in_turn() -> None:
    first = with_older_pytest(TestSuite(requirements=("six",)))
    second = with_older_pytest(first)
    assert [tests.requirements[1:] for tests in (first, second, with_older_pytest(second))] == [
        ("pytest<9",),
        ("pytest<8",),
        ("pytest<8",),
    ]
    assert with_pytest(second) == TestSuite(requirements=("six",))
