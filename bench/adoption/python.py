"""What the files of a Python project tell of its package, its tests and what these need. Pure."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from posixpath import basename, dirname, join
from typing import Any

from ctxbench.bench.adoption.declared import DeclaredRequirements, distribution, extras_of, pytest_settings, words
from ctxbench.bench.languages.python import asts
from ctxbench.bench.languages.python.modules import ModuleIndex
from ctxbench.bench.repositories.manifest import TestSuite
from ctxbench.bench.repositories.pypi import normal

_ASIDE = frozenset(("doc", "docs", "example", "examples", "benchmark", "benchmarks", "scripts", "fuzz"))
"""Folders whose files are neither the package nor its tests."""
_TESTS = frozenset(("test", "tests", "testing", "unit_tests", "unittests"))
_TEST_GROUP = re.compile(r"(^|[^a-z])(tests?|testing|pytest|unittests?|check)([^a-z]|$)|tests_require|^tox py")
"""Names of groups whose requirements are the tests'."""
_OTHER_GROUP = re.compile(r"lint|docs?\b|typing|types|mypy|style|bench|build|release|cover")
_FIXTURES = {
    "mocker": "pytest-mock",
    "benchmark": "pytest-benchmark",
    "httpbin": "pytest-httpbin",
    "httpserver": "pytest-httpserver",
    "httpx_mock": "pytest-httpx",
    "requests_mock": "requests-mock",
    "respx_mock": "respx",
    "aiohttp_client": "pytest-aiohttp",
    "datadir": "pytest-datadir",
    "shared_datadir": "pytest-datadir",
    "data_regression": "pytest-regressions",
    "freezer": "pytest-freezer",
    "snapshot": "syrupy",
    "faker": "faker",
    "fs": "pyfakefs",
}
"""Fixture -> the distribution of the plugin that has it."""
_LEFT = (
    "aifc asynchat asyncore audioop cgi cgitb chunk crypt distutils imghdr imp lib2to3 mailcap msilib nis nntplib "
    "ossaudiodev pipes smtpd sndhdr spwd sunau telnetlib uu xdrlib"
)
"""Modules that left the standard library after 3.11: no package of that name is what a suite means."""
_STANDARD = sys.stdlib_module_names | set(_LEFT.split())
_DISTRIBUTIONS = {
    "attr": "attrs",
    "bs4": "beautifulsoup4",
    "bson": "pymongo",
    "cv2": "opencv-python",
    "dateutil": "python-dateutil",
    "dns": "dnspython",
    "dotenv": "python-dotenv",
    "flask_sqlalchemy": "Flask-SQLAlchemy",
    "git": "GitPython",
    "google.protobuf": "protobuf",
    "jwt": "PyJWT",
    "magic": "python-magic",
    "mock": "mock",
    "multipart": "python-multipart",
    "OpenSSL": "pyOpenSSL",
    "PIL": "Pillow",
    "pkg_resources": "setuptools<80",
    "ruamel": "ruamel.yaml",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "slugify": "python-slugify",
    "socks": "PySocks",
    "usb": "pyusb",
    "yaml": "PyYAML",
    "zmq": "pyzmq",
    "zope": "zope.interface",
}
"""Import name -> distribution, where the two differ."""
_FORMS = ("pytest-{}", "python-{}", "py{}", "{}-python")
"""Of the names that distributions have beside those of their modules."""
_BESIDE = """
    black build check-manifest codecov covdefaults coverage coveralls enabler exceptiongroup flake8 iniconfig
    isort mypy nox packaging pip pluggy pre-commit pyflakes pylint pyright pytest pytest-black pytest-checkdocs
    pytest-clarity pytest-codspeed pytest-cov pytest-enabler pytest-flake8
    pytest-github-actions-annotate-failures pytest-html pytest-isort pytest-mypy pytest-parallel pytest-perf
    pytest-pretty pytest-random-order pytest-randomly pytest-reverse pytest-ruff pytest-sugar pytest-xdist ruff
    setuptools tox tox-gh-actions tox-uv twine uv virtualenv wheel xdoctest
"""
_RUNNER = frozenset(_BESIDE.split())
"""What developers run beside the tests, and what would change the order or the number of runs."""


@dataclass(frozen=True, slots=True)
class PythonGuess:
    """How a Python project is tested, and what of that is doubtful."""

    tests: TestSuite | None
    """None: it has none."""
    doubts: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def guess(
    sources: Mapping[str, str], files: Mapping[str, str], declared: DeclaredRequirements, *, wheel: bool
) -> PythonGuess:
    """Return how a project is tested.

    Args:
        sources: path -> text of its ``.py`` files.
        files: path -> text of its other files that were read.
        declared: what it says that it needs.
        wheel: whether the package index has a wheel of it; else its own requirements are the tests'.
    """
    settings = pytest_settings({**files, **sources})
    places = test_paths(sources, settings)
    if not places.files:
        return PythonGuess(None, ("the source holds no tests: an sdist often leaves them out",))
    root, doubts = _import_root(sources, declared, settings)
    needs = _Needs.of(sources, places.files, settings, root)
    requirements, undeclared = _requirements(needs, declared, wheel=wheel)
    if undeclared:
        doubts.append(f"the tests import what no file of it declares: {', '.join(undeclared)}")
    if any(path.endswith((".pyx", ".pxd", ".c", ".rs", ".cpp")) for path in files):
        doubts.append("it has code in other languages, which is not compiled here")
    tests = TestSuite(
        requirements=requirements,
        pythonpath=root or ".",
        paths=places.paths,
        arguments=(*_import_mode(settings), *places.arguments),
        wheel=wheel,
    )
    return PythonGuess(tests, tuple(doubts))


@dataclass(frozen=True, slots=True)
class TestPlaces:
    """Where a project's tests stand."""

    __test__ = False  # pytest would take the class for a test case by its name

    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    """That pytest needs to find them."""


def test_paths(sources: Mapping[str, str], settings: Mapping[str, Any]) -> TestPlaces:
    """Return where the tests are: where the settings say, else in the folders that have a usual name, else anywhere."""
    patterns = words(settings.get("python_files")) or ("test_*.py", "*_test.py")
    named = _expanded(sources, [place.strip("./") for place in words(settings.get("testpaths"))])
    within = [path for path in sources if not named or any(_below(path, place) for place in named)]
    matching = [path for path in within if any(fnmatch.fnmatch(basename(path), pattern) for pattern in patterns)]
    matching = [path for path in matching if named or _ASIDE.isdisjoint(path.split("/")[:-1])]
    if matching:
        return TestPlaces(_covering(matching, named), tuple(matching))
    # Older projects call their test files otherwise: what defines tests in a folder of tests is taken for such a file.
    others = [path for path in sources if _is_in_tests(path) and re.search(r"\bdef test|TestCase\)", sources[path])]
    if others:
        return TestPlaces(_covering(others, []), tuple(others), ("-o", "python_files=*.py"))
    return TestPlaces()


def _expanded(sources: Iterable[str], globs: Iterable[str]) -> list[str]:
    """Return the folders and files that globs of pytest's settings mean; pytest too takes all where these mean none."""
    places = {place: place.split("/") if place else [] for path in sources for place in _upwards(path)}
    named = [place for glob in globs for place in sorted(places) if _matches(places[place], glob.split("/"))]
    return list(dict.fromkeys(named))


def _matches(parts: Sequence[str], globs: Sequence[str]) -> bool:
    if not parts or not globs:
        return not parts and set(globs) <= {"", "**"}
    if globs[0] == "**":
        return _matches(parts, globs[1:]) or _matches(parts[1:], globs)
    return fnmatch.fnmatchcase(parts[0], globs[0]) and _matches(parts[1:], globs[1:])


def _below(path: str, place: str) -> bool:
    return not place or path == place or path.startswith(f"{place}/")


def _is_in_tests(path: str) -> bool:
    return not _TESTS.isdisjoint(path.removesuffix(".py").split("/")) and _ASIDE.isdisjoint(path.split("/")[:-1])


def _covering(paths: Sequence[str], named: Sequence[str]) -> tuple[str, ...]:
    """Return the folders that hold test files: of each the outermost with a usual name, else its own."""
    folders = dict.fromkeys(place for place in named if any(_below(path, place) for path in paths))
    for path in paths if not named else ():
        parts = path.split("/")
        depth = next((place for place, part in enumerate(parts[:-1]) if part in _TESTS), None)
        folders["/".join(parts[: depth + 1]) if depth is not None else dirname(path) or path] = None
    outermost = [place for place in folders if not any(_below(place, other) and place != other for other in folders)]
    return tuple(place or "." for place in (outermost if named else sorted(outermost)))


def _import_mode(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the one of the project's own options of pytest without which its tests may not be imported."""
    options = " ".join(words(settings.get("addopts")))
    mode = re.search(r"--import-mode[= ](\w+)", options)
    return (f"--import-mode={mode.group(1)}",) if mode else ()


def _import_root(
    sources: Mapping[str, str], declared: DeclaredRequirements, settings: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Return the folder from which the package is imported, and doubts."""
    configured = [place.strip("./") for place in words(settings.get("pythonpath"))]
    roots, packages = _roots(sources, configured)
    own = {normal(declared.name), normal(declared.name.rpartition(".")[2])} - {""}
    holding = [root for root, names in roots.items() if own & {normal(name) for name in names}]
    likely = [*holding, *(place for place in configured if place in roots), *(["src"] if "src" in roots else [])]
    if not likely:
        likely = sorted(packages, key=lambda root: (root.count("/"), root))
        # Of namespaces alone, without a package in them, there is no root.
        likely = likely or [root for root in (*configured, "src", "") if any(_below(path, root) for path in sources)]
    best = min(likely, key=lambda root: (root != "src", root.count("/"), root)) if holding == [] else min(holding)
    doubts = []
    others = [root or "." for root in roots if root not in (best, "") and "/" not in root and root not in _TESTS]
    if others and best not in ("", "src"):
        doubts.append(f"packages stand in {best} and in {', '.join(others)}: the first was put on the import path")
    return best, doubts


def _roots(sources: Mapping[str, str], configured: Iterable[str]) -> tuple[dict[str, set[str]], set[str]]:
    """Return the folders that imports may start from, each with what its packages may be called; those with packages.

    Args:
        sources: path -> text of all ``.py`` files.
        configured: folders that pytest is told to put on the import path.
    """
    roots: dict[str, set[str]] = {}
    packages: set[str] = set()
    # The parents of a package may be namespace packages, which no file of their own tells: imports spell them.
    index = ModuleIndex(sources, frozenset(_spelled(sources.values())))
    for path in sorted(sources):
        folder = dirname(path)
        is_package = basename(path) == "__init__.py" and join(dirname(folder), "__init__.py") not in sources
        if not is_package and folder not in ("", "src"):
            continue
        outer, top = (dirname(folder), basename(folder)) if is_package else (folder, basename(path).removesuffix(".py"))
        if {*outer.split("/")} & (_ASIDE | _TESTS) or top in _TESTS or _in_package(outer, sources):
            continue
        if not is_package:
            roots.setdefault(outer, set()).add(top)
            continue
        root = folder.removesuffix(index.name(path).replace(".", "/")).strip("/")
        # The whole repository is put on it for what the tests have beside them, too: that says nothing of the package.
        root = next((place for place in configured if place and _below(root, place)), root)
        name = folder.removeprefix(root).strip("/").replace("/", ".")
        roots.setdefault(root, set()).update((name, name.partition(".")[0], top))
        packages.add(root)
    return roots, packages


def _spelled(texts: Iterable[str]) -> Iterator[str]:
    for tree in map(asts.parse, texts):
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _in_package(folder: str, sources: Collection[str]) -> bool:
    return join(folder, "__init__.py") in sources if folder else False


@dataclass(frozen=True, slots=True)
class _Needs:
    modules: tuple[str, ...]
    """Top-level names that are imported when a test file is."""
    optional: tuple[str, ...]
    """That are imported later, or where a failure is expected."""
    plugins: tuple[str, ...]
    """Distributions of pytest plugins that its settings require."""

    @classmethod
    def of(cls, sources: Mapping[str, str], tests: Iterable[str], settings: Mapping[str, Any], root: str) -> _Needs:
        support = {path for path in sources if basename(path) == "conftest.py" or _is_in_tests(path)}
        internal = _internal(sources, (*tests, *support), root)
        modules: dict[str, None] = {}
        optional: dict[str, None] = {}
        for path in sorted({*tests, *support}):
            tree = asts.parse(sources[path])
            for name, is_needed in _imports(tree) if tree is not None else ():
                if name not in internal and name not in _STANDARD:
                    (modules if is_needed else optional)[name] = None
        plugins = dict.fromkeys(distribution(name) for name in words(settings.get("required_plugins")))
        return cls(tuple(modules), tuple(name for name in optional if name not in modules), tuple(plugins))


def _internal(sources: Mapping[str, str], tests: Iterable[str], root: str) -> frozenset[str]:
    """Return the top-level names that the repository itself has, seen from its tests and from its import path."""
    beside = {"src", root, *(folder for path in tests for folder in _upwards(dirname(path)))}
    names: set[str] = set()
    for path in sources:
        parts = path.removesuffix(".py").split("/")
        names.update(part for depth, part in enumerate(parts) if "/".join(parts[:depth]) in beside)
        if basename(path) == "__init__.py" and len(parts) > 1:
            outer = dirname(dirname(path))
            if join(outer, "__init__.py") not in sources:
                names.add(parts[-2])
    return frozenset(names)


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""


def _imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the top-level names that a file imports, and whether it cannot be imported without them."""
    waiting: list[tuple[ast.AST, bool]] = [(node, True) for node in tree.body]
    while waiting:
        node, is_needed = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], is_needed) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0], is_needed
        elif isinstance(node, ast.Call) and "importorskip" in ast.unparse(node.func):
            yield from (
                (str(word.value).partition(".")[0], False) for word in node.args if isinstance(word, ast.Constant)
            )
        later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.If)
        guarded = isinstance(node, ast.Try) and bool(node.handlers)
        waiting += [(child, is_needed and not later and not guarded) for child in ast.iter_child_nodes(node)]


def _requirements(needs: _Needs, declared: DeclaredRequirements, *, wheel: bool) -> tuple[tuple[str, ...], list[str]]:
    """Return what must be installed for the tests, and the names of those modules that no file declares."""
    own = {distribution(requirement) for requirement in declared.own}
    offered: dict[str, str] = {}
    listed: dict[str, str] = {}
    for group, requirements in declared.groups.items():
        by_name = {distribution(requirement): requirement for requirement in requirements}
        usable = {name: item for name, item in by_name.items() if name not in {*_RUNNER, normal(declared.name)}}
        offered = {**usable, **offered}
        if _TEST_GROUP.search(group.lower()) and not _OTHER_GROUP.search(group.lower()):
            listed = {**usable, **listed}
    undeclared = []
    for module in needs.modules:
        name = distribution(of_module(module, {*offered, *own}))
        if name not in {*_RUNNER, *own, normal(declared.name)}:
            undeclared += [module] if name not in offered else []
            listed.setdefault(name, offered.get(name, of_module(module, offered)))
    for name in (distribution(of_module(module, offered)) for module in needs.optional):
        if name in offered:
            listed.setdefault(name, offered[name])
    for plugin in needs.plugins:
        listed.setdefault(normal(plugin), offered.get(normal(plugin), plugin))
    more = sorted(requirement for name, requirement in listed.items() if name not in own)
    return (*(() if wheel else declared.own), *more), undeclared


def of_module(module: str, offered: Collection[str]) -> str:
    """Return the distribution that most likely brings a module: of those that are offered, if one can be meant."""
    usual = _DISTRIBUTIONS.get(module, module.lstrip("_").replace("_", "-"))
    plain = normal(module)
    candidates = (plain, distribution(usual), *(form.format(plain) for form in _FORMS))
    return next((name for name in candidates if name in offered), usual)


_NO_MODULE = re.compile(r"No module named '([A-Za-z0-9_.]+)'")
_NO_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_OLD_PYTEST = re.compile(
    "PytestRemovedIn9Warning|yield tests were removed|Marks applied to fixtures|unexpected keyword argument 'fspath'"
)
_NO_DISTRIBUTION = re.compile(r"No matching distribution found for ([A-Za-z0-9._-]+)")

_CONFLICT = re.compile(r"onflict|ResolutionImpossible")
_UNREADABLE = re.compile(r"Invalid requirement: |is not a requirement")


def internal_names(tree: Iterable[str]) -> frozenset[str]:
    """Return the names of all folders and modules of a repository: no distribution is meant by them."""
    paths = (path.removesuffix(".py").split("/") for path in tree if path.endswith(".py"))
    return frozenset(part for parts in paths for part in parts)


def mended(
    tests: TestSuite, declared: DeclaredRequirements, messages: Iterable[str], internal: Collection[str]
) -> TestSuite:
    """Return a suite with what messages of pytest and pip say that it lacks; the same suite if they say nothing of use.

    Args:
        tests: the suite that was tried.
        declared: what the project declares.
        messages: of all suites that were tried before, too: what the index does not have is not asked for again.
        internal: names of the project's own modules, which are not to be had from an index.
    """
    text = "\n".join(messages)
    offered = {distribution(requirement): requirement for listed in declared.groups.values() for requirement in listed}
    own = {distribution(requirement) for requirement in declared.own}
    present = {distribution(requirement) for requirement in tests.requirements}
    more = []
    for module in dict.fromkeys(_NO_MODULE.findall(text)):
        top = module.partition(".")[0]
        requirement = of_module(top, {*offered, *own})
        if top not in internal and top not in _STANDARD:
            more.append(offered.get(distribution(requirement), requirement))
    more += [_FIXTURES[name] for name in dict.fromkeys(_NO_FIXTURE.findall(text)) if _FIXTURES.get(name)]
    if "async def functions are not natively supported" in text:
        more.append(offered.get("pytest-asyncio", "pytest-asyncio"))
    if _OLD_PYTEST.search(text):
        more.append("pytest<8")
    absent = {normal(name) for name in _NO_DISTRIBUTION.findall(text)}
    taken_names = present | absent | {normal(declared.name)}
    fresh = {distribution(item): item for item in more if distribution(item) not in taken_names}
    remaining = [item for item in tests.requirements if distribution(item) not in absent]
    is_conflict = bool(_CONFLICT.search(text))
    remaining = [bare(item) if is_conflict or is_unreadable(item, text) else item for item in remaining]
    return replace(tests, requirements=(*remaining, *fresh.values()))


def is_unreadable(requirement: str, text: str) -> bool:
    """Say whether a text says that a requirement is none; pip names it without its marker."""
    forms = [repr(" ".join(form.split())) for form in (requirement, requirement.partition(";")[0])]
    return any(f"Invalid requirement: {form}" in text or f"{form} is not a requirement" in text for form in forms)


def is_unmet(text: str) -> bool:
    """Say whether a text says that requirements cannot be met as they are, whatever the network does."""
    return bool(_CONFLICT.search(text) or _UNREADABLE.search(text))


def bare(requirement: str) -> str:
    """Return a requirement that any version meets."""
    extras = extras_of(requirement)
    return distribution(requirement) + (f"[{','.join(extras)}]" if extras else "")
