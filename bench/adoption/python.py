"""Guesses a Python project's import folder, tests and test requirements, and corrects the requirements after a run."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from posixpath import basename, dirname
from typing import Any

from ctxbench.bench.adoption.declared import DeclaredRequirements, bare, distribution, pytest_settings, words
from ctxbench.bench.languages.python import asts
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.repositories.pypi import normal

_ASIDE = frozenset(("build", "doc", "docs", "example", "examples", "benchmark", "benchmarks", "scripts", "fuzz"))
_TESTS = frozenset(("test", "tests", "testing", "unit_tests", "unittests"))
_TEST_GROUP = re.compile(r"(^|[^a-z])(tests?|testing|pytest|unittests?|check)([^a-z]|$)|tests_require|^tox py")
_OTHER_GROUP = re.compile(r"lint|docs?\b|typing|types|mypy|style|bench|build|release|cover")
_REMOVED = (
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib "
    "ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib"
)
"""Modules removed from the standard library after 3.11. Importing them needs no distribution."""
_STANDARD = sys.stdlib_module_names | set(_REMOVED.split())
_BROUGHT_BY = """
    PIL=Pillow OpenSSL=pyOpenSSL attr=attrs bs4=beautifulsoup4 bson=pymongo cv2=opencv-python dateutil=python-dateutil
    dns=dnspython dotenv=python-dotenv git=GitPython jwt=PyJWT magic=python-magic multipart=python-multipart
    pkg_resources=setuptools<80 serial=pyserial skimage=scikit-image sklearn=scikit-learn slugify=python-slugify
    socks=PySocks usb=pyusb yaml=PyYAML zmq=pyzmq
"""
_DISTRIBUTIONS = {module: name for module, _, name in (pair.partition("=") for pair in _BROUGHT_BY.split())}
_NAMESPACES = frozenset(("azure", "google", "ruamel", "zope"))
"""Namespaces that distributions share. The first two parts of a module's name then identify the distribution."""
_FORMS = ("{}", "pytest-{}", "python-{}", "py{}", "{}-python")
_BESIDE = """
    black build check-manifest codecov covdefaults coverage coveralls enabler exceptiongroup flake8 iniconfig
    isort mypy nox packaging pip pluggy pre-commit pyflakes pylint pyright pytest pytest-black pytest-checkdocs
    pytest-clarity pytest-codspeed pytest-cov pytest-enabler pytest-flake8
    pytest-github-actions-annotate-failures pytest-html pytest-isort pytest-mypy pytest-parallel pytest-perf
    pytest-pretty pytest-random-order pytest-randomly pytest-reverse pytest-ruff pytest-sugar pytest-xdist ruff
    setuptools tox tox-gh-actions tox-uv twine uv virtualenv wheel xdoctest
"""
_RUNNER = frozenset(_BESIDE.split())
"""Developer tools that tests do not need, and plugins that change the order or number of tests."""


@dataclass(frozen=True, slots=True)
class SuiteGuess:
    """A guess of how a project's tests run."""

    tests: TestSuite | None
    doubts: tuple[str, ...] = ()
    source_dir: str = ""


def guess(
    sources: Mapping[str, str], files: Mapping[str, str], declared: DeclaredRequirements, *, wheel: bool
) -> SuiteGuess:
    """Guess how a project's tests run.

    Args:
        sources: path -> text of ``.py`` files.
        files: path -> text of the project's files, with or without `sources`.
        wheel: whether to assume that PyPI has a wheel of the project. If not, the project's requirements are added.
    """
    settings = pytest_settings({**files, **sources})
    paths, test_files = _test_files(sources, settings)
    if not test_files:
        return SuiteGuess(None, ("the source contains no test files; if the sdist omits them, use git+URL@COMMIT",))
    support = (path for path in sources if basename(path) == "conftest.py" or _is_in_tests(path))
    imports = _imported(sources[path] for path in sorted({*test_files, *support}))
    requirements, undeclared = _requirements(imports, declared, internal_names(sources), wheel=wheel)
    doubts = [f"the tests import packages that no file declares: {', '.join(undeclared)}"] if undeclared else []
    if any(path.endswith((".pyx", ".pxd", ".c", ".rs", ".cpp")) for path in files):
        doubts.append("code in other languages than Python is not compiled")
    tests = TestSuite(
        requirements=requirements,
        pythonpath=_import_root(sources, declared.name) or ".",
        paths=paths,
        arguments=_import_mode(settings),
        wheel=wheel,
    )
    return SuiteGuess(tests, tuple(doubts))


def _test_files(sources: Collection[str], settings: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    patterns = words(settings.get("python_files")) or ("test_*.py", "*_test.py")
    named = [place.strip("./") for place in words(settings.get("testpaths"))]
    named = [place for place in named if any(_below(path, place) for path in sources)]
    within = [path for path in sources if not named or any(_below(path, place) for place in named)]
    matching = [path for path in within if any(fnmatchcase(basename(path), pattern) for pattern in patterns)]
    matching = [path for path in matching if named or _ASIDE.isdisjoint(path.split("/")[:-1])]
    is_glob = any(re.search(r"[*?\[]", place) for place in named)
    return () if is_glob else _outermost(named or map(_test_folder, matching)), matching


def _below(path: str, place: str) -> bool:
    return not place or fnmatchcase(path, place) or fnmatchcase(path, f"{place}/*")


def _is_in_tests(path: str) -> bool:
    return not _TESTS.isdisjoint(path.removesuffix(".py").split("/")) and _ASIDE.isdisjoint(path.split("/")[:-1])


def _test_folder(path: str) -> str:
    parts = path.split("/")
    depth = next((place for place, part in enumerate(parts[:-1]) if part in _TESTS), None)
    return "/".join(parts[: depth + 1]) if depth is not None else dirname(path) or path


def _outermost(places: Iterable[str]) -> tuple[str, ...]:
    distinct = dict.fromkeys(places)
    inner = {place for place in distinct if any(_below(place, other) and place != other for other in distinct)}
    return tuple(place or "." for place in distinct if place not in inner)


def _import_mode(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ``--import-mode`` option in pytest's settings. Without this option, tests may not be importable."""
    options = " ".join(words(settings.get("addopts")))
    mode = re.search(r"--import-mode[= ](\w+)", options)
    return (f"--import-mode={mode.group(1)}",) if mode else ()


def _import_root(sources: Collection[str], name: str) -> str:
    """Return the folder to import the project from: ``src``, or the folder of the module with the project's name."""
    if any(path.startswith("src/") for path in sources):
        return "src"
    for path in sorted(sources, key=lambda path: (path.count("/"), path)):
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        for depth in range(len(parts)):
            names = (".".join(parts[depth:end]) for end in range(depth + 1, len(parts) + 1))
            if (_ASIDE | _TESTS).isdisjoint(parts[:depth]) and normal(name) in map(normal, names):
                return "/".join(parts[:depth])
    return ""


def _beginnings(module: str) -> Iterator[str]:
    while module:
        yield module
        module = module.rpartition(".")[0]


def _imported(texts: Iterable[str]) -> dict[str, bool]:
    imports: dict[str, bool] = {}
    for tree in map(asts.parse, texts):
        for name, is_needed in _imports(tree) if tree is not None else ():
            imports[name] = imports.get(name, False) or is_needed
    return imports


def _imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    waiting: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while waiting:
        node, is_needed = waiting.pop(0)
        if isinstance(node, ast.Import):
            yield from ((alias.name, is_needed) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{alias.name}", is_needed) for alias in node.names)
        elif isinstance(node, ast.Call) and asts.called(node) == "importorskip":
            yield from ((str(word.value), False) for word in node.args if isinstance(word, ast.Constant))
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.If)
        guarded = isinstance(node, ast.Try) and bool(node.handlers)
        waiting += [(child, is_needed and not later and not guarded) for child in ast.iter_child_nodes(node)]


def _requirements(
    imports: Mapping[str, bool],
    declared: DeclaredRequirements,
    internal: Collection[str],
    *,
    wheel: bool,
) -> tuple[tuple[str, ...], list[str]]:
    own = {distribution(requirement) for requirement in declared.own}
    offered: dict[str, str] = {}
    listed: dict[str, str] = {}
    for group, requirements in declared.groups.items():
        by_name = {distribution(requirement): requirement for requirement in requirements}
        usable = {name: item for name, item in by_name.items() if name not in {*_RUNNER, normal(declared.name)}}
        offered = {**usable, **offered}
        if _TEST_GROUP.search(group.lower()) and not _OTHER_GROUP.search(group.lower()):
            listed = {**usable, **listed}
    undeclared: dict[str, None] = {}
    for module, is_needed in imports.items():
        name = of_module(module, {*offered, *own, *_RUNNER, normal(declared.name)}, internal)
        if name in offered:
            listed.setdefault(name, offered[name])
        elif is_needed and name and distribution(name) not in {*own, *_RUNNER, normal(declared.name)}:
            listed.setdefault(distribution(name), name)
            undeclared[module.partition(".")[0]] = None
    more = sorted(requirement for name, requirement in listed.items() if name not in own)
    return (*(() if wheel else declared.own), *more), [*undeclared]


def of_module(module: str, offered: Collection[str], internal: Collection[str]) -> str:
    """Return the distribution that most likely contains a module; empty for Python's modules and the project's own.

    Args:
        offered: normalized distribution names. The longest one that `module` starts with wins, even for own modules.
        internal: names of the project's own modules and folders.
    """
    top = module.partition(".")[0]
    if top in _STANDARD:
        return ""
    usual = _DISTRIBUTIONS.get(top, top.lstrip("_").replace("_", "-"))
    plain = [normal(name.lstrip("_")) for name in _beginnings(module)]
    candidates = [*plain, distribution(usual), *(form.format(plain[-1]) for form in _FORMS)]
    name = next((name for name in candidates if name in offered), "")
    if name or top in internal:
        return name
    return ".".join(module.split(".")[:2]) if top in _NAMESPACES else usual


_NO_MODULE = re.compile(r"No module named '([A-Za-z0-9_.]+)'")
_NO_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_NO_DISTRIBUTION = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")
_CONFLICT = re.compile(r"onflict|ResolutionImpossible")
_UNREADABLE = re.compile(r"Invalid requirement: |is not a requirement")


def internal_names(tree: Iterable[str]) -> frozenset[str]:
    """Return the names of a repository's Python modules and of the folders that contain them."""
    paths = (path.removesuffix(".py").split("/") for path in tree if path.endswith(".py"))
    return frozenset(part for parts in paths for part in parts)


def add_missing(
    tests: TestSuite, declared: DeclaredRequirements, messages: Iterable[str], internal: Collection[str]
) -> TestSuite:
    """Return the suite without unavailable requirements (after a conflict, also without versions), plus missing ones.

    Args:
        messages: pytest's and pip's messages about all suites so far. Distributions that pip cannot find stay out.
        internal: names of the project's own modules and folders.
    """
    text = "\n".join(messages)
    offered = {distribution(requirement): requirement for listed in declared.groups.values() for requirement in listed}
    own = {distribution(requirement) for requirement in declared.own}
    names = [of_module(module, {*offered, *own}, internal) for module in dict.fromkeys(_NO_MODULE.findall(text))]
    if _NO_FIXTURE.search(text):
        names += [name for name in offered if name.startswith("pytest-")]
        names += [name for name in dict.fromkeys(map(normal, _NO_FIXTURE.findall(text))) if name in offered]
    if "async def functions are not natively supported" in text:
        names.append("pytest-asyncio")
    dropped = unavailable(text)
    present = {distribution(requirement) for requirement in tests.requirements}
    taken_names = present | dropped | _RUNNER | {normal(declared.name), ""}
    more = [offered.get(distribution(name), name) for name in names]
    fresh = {distribution(item): item for item in more if distribution(item) not in taken_names}
    remaining = [item for item in tests.requirements if distribution(item) not in dropped]
    remaining = [*map(bare, remaining)] if _CONFLICT.search(text) else remaining
    return replace(tests, requirements=(*remaining, *fresh.values()))


def unavailable(text: str) -> frozenset[str]:
    """Return the normalized names of the distributions that pip's messages report as unavailable."""
    return frozenset(map(normal, _NO_DISTRIBUTION.findall(text)))


PYTESTS = ("pytest<9", "pytest<8")
"""Older pytest versions, newest first, for suites that fail with the current one."""


def with_older_pytest(tests: TestSuite) -> TestSuite:
    """Return the suite with the next older pytest of `PYTESTS`; unchanged if it already has the oldest."""
    others = tuple(item for item in tests.requirements if item not in PYTESTS)
    used = next((place for place, item in enumerate(PYTESTS) if item in tests.requirements), -1)
    return replace(tests, requirements=(*others, PYTESTS[min(used + 1, len(PYTESTS) - 1)]))


def with_pytest(tests: TestSuite) -> TestSuite:
    """Return the suite without the requirements in `PYTESTS`, so that it runs with the current pytest."""
    return replace(tests, requirements=tuple(item for item in tests.requirements if item not in PYTESTS))


def is_unmet(text: str) -> bool:
    """Return whether a text with pip's messages reports conflicting or invalid requirements."""
    return bool(_CONFLICT.search(text) or _UNREADABLE.search(text))
