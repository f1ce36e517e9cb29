"""What a Python project declares that it needs, in any of the files that are usual for that. Pure."""

from __future__ import annotations

import ast
import configparser
import contextlib
import email
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import Any

from ctxbench.bench.languages.python import asts
from ctxbench.bench.repositories.pypi import normal

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_REQUIREMENTS_FILE = re.compile(r"(^|/)([\w.-]*requirements?[\w.-]*|requirements?/[\w.-]+)\.(txt|in|pip)$")
_CLAUSE = re.compile(r"(\^|~=?|={1,3}|!=|[<>]=?)?\s*([^\s,|<>=!~^]+)")
"""Operator and version of a constraint of Poetry's."""


@dataclass(frozen=True, slots=True)
class DeclaredRequirements:
    """A project's requirements, as pip takes them."""

    name: str = ""
    version: str = ""
    own: tuple[str, ...] = ()
    """What the package itself needs."""
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of an extra, of a dependency group, of a requirements file or of an environment -> what it brings."""
    licences: tuple[tuple[str, str], ...] = ()
    """File -> what it calls the licence: an expression, a name, or what a classifier ends with."""


def distribution(requirement: str) -> str:
    """Return the normal name of what a requirement asks for; empty if it is none."""
    match = _NAME.match(requirement)
    return normal(match.group(1)) if match else ""


def extras_of(requirement: str) -> tuple[str, ...]:
    """Return the extras that a requirement names."""
    match = _NAME.match(requirement)
    listed = match.group(2) if match else None
    return tuple(normal(extra.strip()) for extra in listed[1:-1].split(",")) if listed else ()


def declared(files: Mapping[str, str]) -> DeclaredRequirements:
    """Return what a project's files declare.

    Args:
        files: path -> text; only those that are read for this matter.
    """
    project = _table(files.get("pyproject.toml", ""))
    readings = [_pyproject(project), _setup_cfg(files), _setup_py(files.get("setup.py", ""))]
    readings.append(_metadata(files.get("PKG-INFO", "")))
    groups: dict[str, tuple[str, ...]] = {}
    own: dict[str, None] = {}
    for reading in readings:
        own |= dict.fromkeys(reading.own)
        for group, requirements in reading.groups.items():
            groups[group] = tuple(dict.fromkeys([*groups.get(group, ()), *requirements]))
    groups |= _requirements_files(files)
    groups |= _environments(files)
    name = next((reading.name for reading in readings if reading.name), "")
    version = next((reading.version for reading in readings[::-1] if reading.version), "")
    poms = re.findall(r"<license>.*?<name>\s*([^<]+?)\s*</name>", files.get("pom.xml", ""), re.DOTALL)
    licences = (*(pair for reading in readings for pair in reading.licences), *_licences("pom.xml", poms, ()))
    return DeclaredRequirements(name, version, _usable(own), _expanded(name, groups), licences)


def pytest_settings(files: Mapping[str, str]) -> Mapping[str, Any]:
    """Return pytest's settings as the first file that holds some has them, lists as lists where the form has lists."""
    for name in ("pytest.toml", ".pytest.toml"):
        if name in files:
            return _dict(_table(files[name]).get("pytest"))
    for name in ("pytest.ini", ".pytest.ini"):
        if name in files:
            return _section(_ini(files[name]), "pytest")
    tool = _dict(_dict(_table(files.get("pyproject.toml", "")).get("tool")).get("pytest"))
    if tool:
        return _dict(tool.get("ini_options")) or tool
    for name, section in (("tox.ini", "pytest"), ("setup.cfg", "tool:pytest")):
        settings = _section(_ini(files.get(name, "")), section)
        if settings:
            return settings
    return {}


def words(value: object) -> tuple[str, ...]:
    """Return a setting that is a list, or a text of words, as a tuple."""
    if isinstance(value, list):
        return tuple(str(item) for item in value)
    return tuple(value.split()) if isinstance(value, str) else ()


def _pyproject(data: Mapping[str, Any]) -> DeclaredRequirements:
    project, tool = _dict(data.get("project")), _dict(data.get("tool"))
    groups: dict[str, tuple[str, ...]] = {}
    for name, requirements in _dict(project.get("optional-dependencies")).items():
        groups[name] = _texts(requirements)
    raw_groups = _dict(data.get("dependency-groups"))
    for name in raw_groups:
        groups[name] = (*groups.get(name, ()), *_group(name, raw_groups, ()))
    poetry = _dict(tool.get("poetry"))
    for name, group in _dict(poetry.get("group")).items():
        groups[name] = (*groups.get(name, ()), *_poetry(_dict(group).get("dependencies")))
    if "dev-dependencies" in poetry:
        groups["dev"] = (*groups.get("dev", ()), *_poetry(poetry["dev-dependencies"]))
    for name, environment in _dict(_dict(tool.get("hatch")).get("envs")).items():
        table = _dict(environment)
        listed = (*_texts(table.get("dependencies")), *_texts(table.get("extra-dependencies")))
        groups[f"hatch {name}"] = listed
    groups["uv dev"] = _texts(_dict(tool.get("uv")).get("dev-dependencies"))
    for name, requirements in _dict(_dict(tool.get("pdm")).get("dev-dependencies")).items():
        groups[name] = (*groups.get(name, ()), *_texts(requirements))
    own = (*_texts(project.get("dependencies")), *_poetry(poetry.get("dependencies")))
    metadata = {**poetry, **project}
    name, version, stated = (metadata.get(key, "") for key in ("name", "version", "license"))
    licences = _licences(
        "pyproject.toml", stated.get("text") if isinstance(stated, dict) else stated, metadata.get("classifiers")
    )
    return DeclaredRequirements(str(name), str(version), own, groups, licences)


def _licences(file: str, stated: object, classifiers: object) -> tuple[tuple[str, str], ...]:
    classes = [text.rpartition("::")[2] for text in _texts(classifiers) if text.startswith("License ::")]
    names = [text.strip() for text in (*_texts(stated), *classes)]
    # A whole text, or the name of its file, stands there too.
    return tuple((file, name) for name in names if name and len(name) < 200 and not name.startswith("file:"))


def _group(name: str, groups: Mapping[str, Any], outer: tuple[str, ...]) -> tuple[str, ...]:
    listed: list[str] = []
    for item in groups.get(name, []) if isinstance(groups.get(name, []), list) else []:
        if isinstance(item, str):
            listed.append(item)
        elif isinstance(item, dict) and "include-group" in item:
            inner = str(item["include-group"])
            if inner not in (*outer, name):
                listed += _group(inner, groups, (*outer, name))
    return tuple(listed)


def _poetry(dependencies: object) -> tuple[str, ...]:
    requirements = []
    for name, value in _dict(dependencies).items():
        constraint = value.get("version", "") if isinstance(value, dict) else value
        if name != "python":
            requirements.append(f"{name}{_bounds(constraint) if isinstance(constraint, str) else ''}")
    return tuple(requirements)


def _bounds(constraint: str) -> str:
    """Return a constraint of Poetry's as pip takes it: a caret becomes a lower bound, and so do alternatives."""
    alternatives = [
        [(operator, version) for operator, version in _CLAUSE.findall(part) if version != "*"]
        for part in re.split(r"\|\|?", constraint)
    ]
    if len(alternatives) == 1:
        return ",".join(_bound(operator, version) for operator, version in alternatives[0])
    lower = [[version for operator, version in clauses if operator[:1] not in ("<", "!")] for clauses in alternatives]
    if not all(lower):
        return ""
    versions = [version.removesuffix(".*") for listed in lower for version in listed]
    return f">={min(versions, key=lambda version: [int(number) for number in re.findall('[0-9]+', version)])}"


def _bound(operator: str, version: str) -> str:
    if operator in ("", "="):
        return f"=={version}"
    if operator in ("==", "!=", "==="):
        return f"{operator}{version}"
    return f"{'>=' if operator in ('^', '~') else operator}{version.removesuffix('.*')}"


def _setup_cfg(files: Mapping[str, str]) -> DeclaredRequirements:
    parser = _ini(files.get("setup.cfg", ""))
    options, metadata = _section(parser, "options"), _section(parser, "metadata")
    groups = {name: _listed(text, files) for name, text in _section(parser, "options.extras_require").items()}
    groups["tests_require"] = _listed(options.get("tests_require", ""), files)
    version = metadata.get("version", "")
    return DeclaredRequirements(
        metadata.get("name", ""),
        version if re.match(r"\d", version) else "",
        _listed(options.get("install_requires", ""), files),
        groups,
        _licences("setup.cfg", metadata.get("license"), _lines(metadata.get("classifiers", ""))),
    )


def _listed(text: str, files: Mapping[str, str]) -> tuple[str, ...]:
    """Return the requirements of a setting, or those of the files that it names with ``file:``."""
    if not text.strip().startswith("file:"):
        return _lines(text)
    places = text.strip().removeprefix("file:").split(",")
    return tuple(line for place in places for line in _pinned(normpath(place.strip()), files, ()))


def _setup_py(text: str) -> DeclaredRequirements:
    """Return what a `setup.py` says in plain literals; nothing of it is run."""
    tree = asts.parse(text)
    if tree is None:
        return DeclaredRequirements()
    constants: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants[node.targets[0].id] = _literal(node.value, constants)
    keywords: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            called = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            if called == "setup":
                keywords |= {word.arg: _literal(word.value, constants) for word in node.keywords if word.arg}
    groups = {str(name): _texts(listed) for name, listed in _dict(keywords.get("extras_require")).items()}
    groups["tests_require"] = _texts(keywords.get("tests_require"))
    name, version = keywords.get("name"), keywords.get("version")
    return DeclaredRequirements(
        name if isinstance(name, str) else "",
        version if isinstance(version, str) else "",
        _texts(keywords.get("install_requires")),
        groups,
        _licences("setup.py", keywords.get("license"), keywords.get("classifiers")),
    )


def _literal(node: ast.expr, constants: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _literal(node.left, constants), _literal(node.right, constants)
        return left + right if type(left) is type(right) and isinstance(left, list | tuple) else left or right
    if isinstance(node, ast.List | ast.Tuple):
        return [item for item in (_literal(element, constants) for element in node.elts) if item is not None]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        entries = ((_literal(key, constants), value) for key, value in pairs if key is not None)
        # Keys that are no texts name nothing, and a tuple is a list here, which can be none.
        return {key: _literal(value, constants) for key, value in entries if isinstance(key, str)}
    return node.value if isinstance(node, ast.Constant) else None


def _metadata(text: str) -> DeclaredRequirements:
    message = email.message_from_string(text)
    own: list[str] = []
    groups: dict[str, list[str]] = {}
    for requirement in map(str, message.get_all("Requires-Dist", [])):
        extra = _EXTRA.search(requirement)
        if extra:
            bare, _, marker = requirement.partition(";")
            condition = re.sub(rf"\s*(and\s+)?\(?{_EXTRA.pattern}\)?(\s+and\s*)?", "", marker).strip(" ()")
            groups.setdefault(extra.group(1), []).append(f"{bare.strip()}; {condition}" if condition else bare.strip())
        else:
            own.append(requirement)
    return DeclaredRequirements(
        str(message.get("Name", "")),
        str(message.get("Version", "")),
        tuple(own),
        {name: tuple(listed) for name, listed in groups.items()},
        _licences(
            "PKG-INFO",
            [str(value) for key in ("License-Expression", "License") for value in message.get_all(key, [])],
            list(map(str, message.get_all("Classifier", []))),
        ),
    )


def _requirements_files(files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    return {path: _pinned(path, files, ()) for path in sorted(files) if _REQUIREMENTS_FILE.search(path)}


def _pinned(path: str, files: Mapping[str, str], outer: tuple[str, ...]) -> tuple[str, ...]:
    listed: list[str] = []
    for line in _lines(files.get(path, "").replace("\\\n", " ")):
        inner = re.match(r"(?:-r|--requirement)[ =]*(\S+)", line)
        if inner:
            place = normpath(join(dirname(path), inner.group(1)))
            listed += _pinned(place, files, (*outer, path)) if place not in (*outer, path) else ()
        elif not line.startswith("-"):
            listed.append(re.sub(r"\s+--hash=.*$", "", line))
    return tuple(listed)


def _environments(files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    parser = _ini(files.get("tox.ini", ""))
    for section in parser.sections():
        if section.startswith("testenv"):
            listed: list[str] = []
            for line in _lines(_section(parser, section).get("deps", "")):
                text = re.sub(r"^[\w{},.!-]+:\s+", "", line).strip()
                inner = re.match(r"(?:-r|-c)\s*(\S+)", text)
                if inner:
                    place = normpath(inner.group(1).replace("{toxinidir}/", ""))
                    listed += _pinned(place, files, ()) if text.startswith("-r") else ()
                elif not text.startswith("{"):
                    listed.append(text)
            groups[f"tox {section.partition(':')[2] or 'tests'}"] = tuple(listed)
    tree = asts.parse(files.get("noxfile.py", ""))
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            groups[f"nox {node.name}"] = tuple(_installed(node))
    return groups


def _installed(session: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(session):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "install":
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def _expanded(name: str, groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """Return groups in which the project's own extras, ``project[test]``, stand for what they bring."""
    by_extra = {normal(group): listed for group, listed in groups.items()}

    def whole(requirements: Iterable[str], outer: tuple[str, ...]) -> Iterator[str]:
        for requirement in requirements:
            if not name or distribution(requirement) != normal(name):
                yield requirement
                continue
            for extra in extras_of(requirement):
                if extra not in outer:
                    yield from whole(by_extra.get(extra, ()), (*outer, extra))

    return {group: _usable(whole(listed, (normal(group),))) for group, listed in groups.items() if listed}


def _usable(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements without comments; what names an address, a path or an option is none."""
    texts = (re.sub(r"(^|\s)#.*$", "", requirement).strip() for requirement in requirements)
    return tuple(
        dict.fromkeys(
            text
            for text in texts
            if _NAME.match(text) and not re.search(r"[@/{}\\]", text.partition(";")[0]) and not text.endswith(".txt")
        )
    )


def _table(text: str) -> Mapping[str, Any]:
    with contextlib.suppress(ValueError, RecursionError):
        return tomllib.loads(text)
    return {}


def _ini(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    with contextlib.suppress(configparser.Error):
        parser.read_string(text)
    return parser


def _section(parser: configparser.RawConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}


def _lines(text: str) -> tuple[str, ...]:
    lines = (re.sub(r"(^|\s)#.*$", "", line).strip() for line in text.splitlines())
    return tuple(line for line in lines if line)


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else ()
