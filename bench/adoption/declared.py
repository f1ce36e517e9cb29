"""Reads what a project's files declare: name, version, requirements, licences and pytest's settings."""

from __future__ import annotations

import configparser
import contextlib
import email
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import dirname, join, normpath
from typing import Any

from ctxbench.bench.repositories.pypi import normal

_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(\[[^\]]*\])?")
_VERSIONS = r"\s*\(?(([~=!<>]=|===|[<>])\s*v?\d[\w.*+!-]*[\s,]*)*\)?\s*"
_POM_NAME = re.compile(r"<name>([^<]*)</name>")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_REQUIREMENTS_FILE = re.compile(r"(^|/)([\w.-]*requirements?[\w.-]*|requirements?/[\w.-]+)\.(txt|in|pip)$")


@dataclass(frozen=True, slots=True)
class DeclaredRequirements:
    """A project's name, version, requirements (in pip's syntax) and licences, as its files declare them."""

    name: str = ""
    version: str = ""
    own: tuple[str, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Requirements, by the name of an extra, dependency group, environment (tox, hatch) or requirements file."""
    licences: tuple[tuple[str, str], ...] = ()
    """(file, licence) pairs. A licence is an expression, a name, or the last part of a classifier."""


def distribution(requirement: str) -> str:
    """Return a requirement's normalized distribution name; empty if the text does not start with a name."""
    match = _NAME.match(requirement)
    return normal(match.group(1)) if match else ""


def extras_of(requirement: str) -> tuple[str, ...]:
    """Return the normalized names of a requirement's extras."""
    match = _NAME.match(requirement)
    listed = match.group(2) if match else None
    return tuple(normal(extra.strip()) for extra in listed[1:-1].split(",")) if listed else ()


def bare(requirement: str) -> str:
    """Return a requirement's normalized name and extras, without its versions and its marker."""
    extras = extras_of(requirement)
    return distribution(requirement) + (f"[{','.join(extras)}]" if extras else "")


def declared(files: Mapping[str, str]) -> DeclaredRequirements:
    """Return the name, version, requirements and licences that a project's files declare.

    Args:
        files: path -> text; irrelevant files are ignored.
    """
    project = _table(files.get("pyproject.toml", ""))
    readings = [_pyproject(project), _setup_cfg(files.get("setup.cfg", "")), _metadata(files.get("PKG-INFO", ""))]
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
    stated = [_POM_NAME.search(part[:2000]) for part in files.get("pom.xml", "").split("<license>")[1:]]
    poms = [match[1].strip() for match in stated if match]
    licences = (*(pair for reading in readings for pair in reading.licences), *_licences("pom.xml", poms, ()))
    return DeclaredRequirements(name, version, _usable(own), _expanded(name, groups), licences)


def pytest_settings(files: Mapping[str, str]) -> Mapping[str, Any]:
    """Return pytest's settings from the file that pytest would choose; empty if no file contains settings."""
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
    """Return the elements of a list setting, or the words of a text setting; empty for other types."""
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
        groups[name] = (*groups.get(name, ()), *_group(name, raw_groups))
    poetry = _dict(tool.get("poetry"))
    for name, group in _dict(poetry.get("group")).items():
        groups[name] = (*groups.get(name, ()), *_poetry(_dict(group).get("dependencies")))
    for name, environment in _dict(_dict(tool.get("hatch")).get("envs")).items():
        table = _dict(environment)
        listed = (*_texts(table.get("dependencies")), *_texts(table.get("extra-dependencies")))
        groups[f"hatch {name}"] = listed
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
    return tuple((file, name) for name in names if name and len(name) < 200 and not name.startswith("file:"))


def _group(name: str, groups: Mapping[str, Any]) -> Iterator[str]:
    # Read each group once: groups may include each other.
    names = {name: groups.get(name)}
    for group in (waiting := [name]):
        for item in listed if isinstance(listed := names[group], list) else ():
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict) and (inner := str(item.get("include-group"))) not in names:
                names[inner] = groups.get(inner)
                waiting.append(inner)


def _poetry(dependencies: object) -> tuple[str, ...]:
    """Return the names of dependencies, without versions, which Poetry writes in its own syntax."""
    return tuple(name for name in _dict(dependencies) if name != "python")


def _setup_cfg(text: str) -> DeclaredRequirements:
    parser = _ini(text)
    options, metadata = _section(parser, "options"), _section(parser, "metadata")
    groups = {name: _lines(text) for name, text in _section(parser, "options.extras_require").items()}
    groups["tests_require"] = _lines(options.get("tests_require", ""))
    version = metadata.get("version", "")
    return DeclaredRequirements(
        metadata.get("name", ""),
        version if re.match(r"\d", version) else "",
        _lines(options.get("install_requires", "")),
        groups,
        _licences("setup.cfg", metadata.get("license"), _lines(metadata.get("classifiers", ""))),
    )


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
    paths = [path for path in sorted(files) if _REQUIREMENTS_FILE.search(path)]
    return {path: tuple(_listed(files[path], path, files)) for path in paths}


def _listed(text: str, path: str, files: Mapping[str, str]) -> Iterator[str]:
    texts = {path: text}
    for place in (places := [path]):
        for line in _lines(texts[place].replace("\\\n", " ")):
            inner = re.match(r"(?:-r|--requirement)[ =]*(\S+)", line)
            included = normpath(join(dirname(place), inner.group(1))) if inner else ""
            if included and included not in texts:
                texts[included] = files.get(included, "")
                places.append(included)
            elif not line.startswith(("-", "{")):
                yield re.sub(r"\s+--hash=.*$", "", line)


def _environments(files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    groups: dict[str, tuple[str, ...]] = {}
    parser = _ini(files.get("tox.ini", ""))
    for section in parser.sections():
        if section.startswith("testenv"):
            text = _section(parser, section).get("deps", "").replace("{toxinidir}/", "")
            text = re.sub(r"^[ \t]*[\w{},.!-]+:\s+", "", text, flags=re.MULTILINE)
            groups[f"tox {section.partition(':')[2] or 'tests'}"] = tuple(_listed(text, "tox.ini", files))
    return groups


def _expanded(name: str, groups: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    by_extra = {normal(group): listed for group, listed in groups.items()}

    def whole(group: str) -> Iterator[str]:
        listed = {normal(group): groups[group]}
        for extra in (waiting := list(listed)):
            for requirement in listed[extra]:
                if not name or distribution(requirement) != normal(name):
                    yield requirement
                    continue
                for inner in set(extras_of(requirement)) - listed.keys():
                    listed[inner] = by_extra.get(inner, ())
                    waiting.append(inner)

    return {group: _usable(whole(group)) for group, listed in groups.items() if listed}


def _usable(requirements: Iterable[str]) -> tuple[str, ...]:
    texts = (re.sub(r"(^|\s)#.*$", "", requirement).strip() for requirement in requirements)
    plain = (text for text in texts if _NAME.match(text) and not re.search(r"[@/{}\\]", text.partition(";")[0]))
    return tuple(dict.fromkeys(map(_readable, (text for text in plain if not text.endswith(".txt")))))


def _readable(requirement: str) -> str:
    name, _, marker = requirement.partition(";")
    is_readable = re.fullmatch(_NAME.pattern + _VERSIONS, name)
    return requirement if is_readable else bare(name) + (f"; {marker.strip()}" if marker else "")


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
