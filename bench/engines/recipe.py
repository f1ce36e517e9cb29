"""Reads what to install and run in an engine's box from the engine's Python or TOML file, which is not executed."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ctxbench.bench import spec as specs
from ctxbench.bench.engines.types import Mode
from ctxbench.bench.errors import InputFault, UnknownName
from ctxbench.bench.files import explained, read_own_file, read_text, sha256
from ctxbench.bench.parameters import Parameter, bind
from ctxbench.bench.spec import Spec, Value
from ctxbench.sandbox.types import Environment

GROUP = "ctxbench.engines"
COMMAND = "ctxbench engine list"
SERVER, SOURCE = "ctxbench_engine", "ctxbench_engine_source"
_HTTP = "http"
_PROTOCOLS: Mapping[str, str] = {"mcp": "mcp", "lines": "command"}
_HEADER = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""PEP 723's regular expression, for its type ``script``."""
_KINDS: Mapping[str, type] = {kind.__name__: kind for kind in (bool, int, float, str)}
_MODE = Parameter(name="mode", kind=str, default=Mode.PER_FILE.value, choices=tuple(mode.value for mode in Mode))
_REMOTE = Parameter(name="remote", kind=bool, default=False)
_CONFIG = "config"
"""Parameter of a shipped engine that receives the TOML file's content. Specs cannot set it."""
_REQUIRES = "requires"
"""Parameter of an engine that lists more pip requirements, separated by spaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """An engine's code, requirements and parameter values, from which its box is built."""

    spec: str
    """Canonical spec: parameters are sorted, and default values left out."""
    mode: Mode
    entry: str
    arguments: Mapping[str, Any]
    source: bytes = field(repr=False)
    requirements: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    """Debian packages to install."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The engine's further files in the box, in a folder of their own: name -> content."""
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    origin: str = ""
    remote: str = ""
    """Server address of a remote engine; empty if the engine runs in a box."""

    @property
    def version(self) -> str:
        """Digest of the engine's code, files, arguments and requirements, and of ctxbench's program in the box."""
        files = [f"{name} {sha256(content)}" for name, content in sorted(self.files.items())]
        parts = [self.entry, repr(sorted(self.arguments.items())), sha256(self.source), sha256(_server())]
        return sha256("\n".join([*parts, *self.requirements, *self.programs, *files]))[:12]

    @property
    def environment(self) -> Environment:
        """Content of the engine's box, without the files to index."""
        library = {f"{SERVER}.py": _server(), f"{SOURCE}.py": self.source}
        library |= {f"{SOURCE}_files/{name}": content for name, content in self.files.items()}
        return Environment(
            name=f"engine {self.spec}", requirements=self.requirements, programs=self.programs, library=library
        )


def _server() -> bytes:
    return Path(__file__).with_name("inside.py").read_bytes()


def names() -> tuple[str, ...]:
    """Return the names of all installed engines, sorted. Nothing is imported."""
    return tuple(sorted(_points()))


def read(text: str) -> Recipe:
    """Return an engine's recipe by its spec.

    Raises:
        InputFault: if the spec or a file is invalid, the name is unknown, or a parameter is wrong.
    """
    spec = specs.parse(text)
    if spec.name.endswith(".toml"):
        return _from_toml(spec)
    path, at, entry = spec.name.rpartition("@")
    if not at:
        point = _points().get(spec.name)
        if point is None:
            specs.check_no_file(spec.name, _classes, noun="class")
            raise UnknownName("engine", spec.name, _points(), command=COMMAND)
        path, entry = _origin(point), point.attr
    return _from_file(spec, Path(path).expanduser(), path if at else spec.name, entry)


def _classes(source: bytes, place: str) -> list[str]:
    return [node.name for node in _module(source, place).body if isinstance(node, ast.ClassDef)] or ["CLASS"]


def _points() -> dict[str, EntryPoint]:
    points: dict[str, EntryPoint] = {}
    for point in entry_points(group=GROUP):
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise InputFault(
                f"two packages provide the engine {point.name!r} ({other.value} and {point.value})",
                cure="uninstall one of them",
            )
    return points


def _origin(point: EntryPoint) -> str:
    """Return the file of an entry point's module. Its parent packages are imported, but the module is not."""
    try:
        module_spec = importlib.util.find_spec(point.module)
    except Exception as error:
        raise InputFault(
            f"the engine {point.name!r} cannot be found ({type(error).__name__}: {error})",
            where=f"plugin {point.value}",
            cure="repair or uninstall the package that provides it",
        ) from error
    if module_spec is None or not module_spec.origin or not point.attr:
        raise InputFault(
            f"the engine {point.name!r} is declared as {point.value!r}, which is not a class in a file",
            cure="declare it as package.module:Class",
        )
    return module_spec.origin


def _from_file(
    spec: Spec, path: Path, place: str, entry: str, config: Mapping[str, Any] | None = None, mode: Mode | None = None
) -> Recipe:
    with explained(place):
        source = path.read_bytes()
    module, has_config = _module(source, place), config is not None
    header = _header(source, place)
    parameters = tuple(p for p in _parameters(module, entry, place) if p.name != _CONFIG)
    arguments = {} if has_config else bind((*parameters, _MODE), spec, command=f"ctxbench engine show {spec.name}")
    mode_of_box = mode or Mode(str(arguments.pop("mode", _MODE.default)))
    more = str(arguments.get(_REQUIRES, "")).split()
    spelled: dict[str, Value] = {
        **arguments,
        **({"mode": mode_of_box.value} if mode_of_box is not Mode.PER_FILE else {}),
    }
    return Recipe(
        spec=str(Spec(spec.name, spelled)),
        mode=mode_of_box,
        entry=entry,
        arguments={**arguments, **({_CONFIG: config} if has_config else {})},
        source=source,
        requirements=(*_texts(header, "dependencies", place), *more),
        programs=tuple(_texts(header.get("tool", {}).get("ctxbench", {}), "programs", place)),
        summary=(ast.get_docstring(module) or "").partition("\n")[0],
        parameters=(*parameters, _MODE),
        origin=str(path),
    )


def _from_toml(spec: Spec) -> Recipe:
    # Imported late: pydantic costs every command a tenth of a second, and few commands read such a file.
    from ctxbench.bench.engines.schema import problems  # noqa: PLC0415

    path = Path(spec.name).expanduser()
    text = read_text(path)
    try:
        config = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # invalid TOML, a number of thousands of digits, deeply nested lists
        raise InputFault(f"the file is not valid TOML ({error})", where=spec.name, cure="correct the file") from None
    protocol = str(config.get("protocol", "mcp"))
    if protocol not in (*_PROTOCOLS, _HTTP):
        raise InputFault(
            f"protocol = {protocol!r} is unknown", where=spec.name, cure=f"write {' or '.join((*_PROTOCOLS, _HTTP))}"
        )
    if faults := [f"{spec.name}: {key}: {what}; {cure}" for key, what, cure in problems(config, protocol)]:
        raise InputFault(" | ".join(faults))
    if protocol == _HTTP:
        return _elsewhere(spec, config, text)
    point = _points()[_PROTOCOLS[protocol]]
    mode = Mode(str(bind((_MODE,), spec).get("mode", _MODE.default)))
    adapter = _from_file(spec, Path(_origin(point)), spec.name, point.attr, config, mode)
    files = {name: read_own_file(path.parent / name) for name in config.get("files", [])}
    own = config.get("requires", [])
    named = {_name_of(text) for text in own}
    return Recipe(
        spec=adapter.spec,
        mode=mode,
        entry=adapter.entry,
        arguments=adapter.arguments,
        source=adapter.source,
        # If server and adapter require the same package, the version in the TOML file wins.
        requirements=(*(text for text in adapter.requirements if _name_of(text) not in named), *own),
        programs=(*adapter.programs, *config.get("programs", [])),
        files=files,
        summary=str(config.get("summary", "")),
        parameters=(_MODE,),
        origin=str(path),
    )


def _name_of(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0].lower()


def check_readable(recipe: Recipe, hidden: Sequence[Path]) -> None:
    """Reject an engine with a file in a hidden folder, because the file would enter the engine's box.

    Args:
        hidden: files and folders that strategies must not read.

    Raises:
        InputFault: if the engine has such a file.
    """
    origin = Path(os.path.realpath(recipe.origin))
    for path in (origin, *(origin.parent / name for name in recipe.files)):
        if any(path.is_relative_to(os.path.realpath(kept)) for kept in hidden):
            raise InputFault(
                "the file is in a folder that engines must not read, because it may contain answers",
                where=str(path),
                cure="move the engine's files to a folder of their own",
            )


def _elsewhere(spec: Spec, config: Mapping[str, Any], text: str) -> Recipe:
    arguments = bind((_REMOTE,), spec)
    if not arguments.get("remote"):
        raise InputFault(
            "the engine sends the repository's files to a server, which may store them",
            where=spec.name,
            cure=f"to allow this, write {spec.name}(remote=on)",
        )
    return Recipe(
        spec=str(Spec(spec.name, {"remote": True})),
        mode=Mode.PER_FILE,
        entry="",
        arguments={},
        source=text.encode(),
        summary=str(config.get("summary", "")),
        parameters=(_REMOTE,),
        origin=str(Path(spec.name).expanduser()),
        remote=checked_url(config.get("url"), spec.name),
    )


def checked_url(url: object, where: str) -> str:
    """Return a server's address after checking it.

    Raises:
        InputFault: if the address is invalid, or may contain a secret. Specs and their files are stored and published.
    """
    text = url if isinstance(url, str) else ""
    with contextlib.suppress(ValueError):
        parts = urlsplit(text)
        secret = parts.username is not None or parts.password is not None or parts.query or parts.fragment
        if parts.scheme in ("http", "https") and parts.hostname and not secret:
            return text
    raise InputFault(
        f"url = {text!r:.80} is not a plain server address", where=where, cure='write url = "http://127.0.0.1:8000/"'
    )


def _module(source: bytes, place: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InputFault(f"the file is not valid Python ({error})", where=place, cure="correct the file") from None


def _header(source: bytes, place: str) -> dict[str, Any]:
    match = _HEADER.search(source.decode("utf-8", "replace"))
    if match is None:
        return {}
    lines = match["content"].splitlines(keepends=True)
    try:
        return tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
    except tomllib.TOMLDecodeError as error:
        raise InputFault(
            f"the `# /// script` comment is invalid TOML ({error})", where=place, cure="correct the comment"
        ) from None


def _texts(table: Mapping[str, Any], key: str, place: str) -> Sequence[str]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputFault(f"{key} = {value!r:.80} is not a list of strings", where=place, cure='write it as ["…"]')
    return value


def _parameters(module: ast.Module, entry: str, place: str) -> tuple[Parameter, ...]:
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    if entry not in classes:
        raise UnknownName("engine", entry, classes, command=f"grep '^class' {place}")
    methods = _methods(classes, entry)
    for method in ("index", "search"):
        if method not in methods:
            raise InputFault(
                f"the class {entry} has no method {method!r}", where=place, cure="add the method (see docs/engine.md)"
            )
    if "__init__" not in methods:
        return ()
    arguments = methods["__init__"].args
    if len(arguments.args) > 1 or arguments.vararg or arguments.kwarg:
        raise InputFault(
            f"{entry}.__init__ has parameters that are not keyword-only",
            where=place,
            cure="write def __init__(self, *, name: int = 10)",
        )
    return tuple(
        _parameter(argument, default, place)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    )


def _methods(classes: Mapping[str, ast.ClassDef], name: str) -> dict[str, ast.FunctionDef]:
    methods: dict[str, ast.FunctionDef] = {}
    for base in reversed(classes[name].bases):
        if isinstance(base, ast.Name) and base.id in classes and base.id != name:
            methods |= _methods({key: node for key, node in classes.items() if key != name}, base.id)
    return methods | {node.name: node for node in classes[name].body if isinstance(node, ast.FunctionDef)}


def _parameter(argument: ast.arg, default: ast.expr | None, place: str) -> Parameter:
    if argument.arg == _CONFIG:
        return Parameter(name=_CONFIG, kind=object)
    choices: tuple[str, ...] = ()
    hint = argument.annotation
    name = hint.id if isinstance(hint, ast.Name) else ""
    try:
        if isinstance(hint, ast.Subscript) and ast.unparse(hint.value).endswith("Literal"):
            words = ast.literal_eval(hint.slice)
            choices, name = tuple(words) if isinstance(words, tuple) else (words,), "str"
        value = ast.literal_eval(default) if default is not None else None
    except ValueError:
        name = ""
    if name not in _KINDS or default is None:
        raise InputFault(
            f"the parameter {argument.arg!r} is not a bool, int, float, str or Literal of words with a plain default",
            where=place,
            cure=f"write for example {argument.arg}: int = 10",
        )
    parameter = Parameter(name=argument.arg, kind=_KINDS[name], default=value, choices=choices)
    parameter.read(value, f"{place}: its default")
    return parameter
