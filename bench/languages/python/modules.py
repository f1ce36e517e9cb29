"""Maps dotted names in a Python repository to places (files or folders), and finds the names that modules export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from posixpath import basename, dirname

from ctxbench.bench.languages.base import FileFacts
from ctxbench.bench.languages.outline import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedName:
    """A name that an import statement binds."""

    statement: int
    bound: str
    """The name in this file; ``a`` for ``import a.b.c``."""
    module: str
    """Dotted name of the module, without leading dots."""
    level: int
    member: str | None
    """The name in the module; None for ``import module``."""
    dotted: bool
    """Whether the statement is ``import a`` or ``import a.b.c`` without ``as``, so that code spells the whole name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StarImport:
    """A star import: ``from module import *``."""

    statement: int
    module: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLoad:
    """A name that is read, with the attributes after it."""

    name: str
    chain: tuple[str, ...]
    near: int
    line: int
    column: int
    quoted: bool
    imports: tuple[int, ...]
    """Indices into `PythonFile.imports`; empty if the file does not bind the name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFile(FileFacts):
    """The imports, definitions and used names of a Python file."""

    statements: tuple[Span, ...]
    imports: tuple[ImportedName, ...]
    stars: tuple[StarImport, ...]
    loads: tuple[NameLoad, ...]
    definitions: Mapping[str, str]
    """Kind (``class``, ``function`` or ``variable``) of each name that the module binds, except by imports."""
    imported: Mapping[str, tuple[int, ...]]
    """Indices into `imports` for each name that imports bind at module level."""
    exported: tuple[str, ...] | None
    """Names in ``__all__`` if it consists of literal strings; None if it is missing or computed."""
    dynamic: bool
    """Whether the module defines ``__getattr__``, which can create names."""


_NAMES = """
__future__ _abc _aix_support _ast _asyncio _bisect _blake2 _bootsubprocess _bz2 _codecs _codecs_cn _codecs_hk
_codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections _collections_abc _compat_pickle _compression
_contextvars _crypt _csv _ctypes _curses _curses_panel _datetime _dbm _decimal _elementtree _frozen_importlib
_frozen_importlib_external _functools _gdbm _hashlib _heapq _imp _io _json _locale _lsprof _lzma _markupbase _md5
_msi _multibytecodec _multiprocessing _opcode _operator _osx_support _overlapped _pickle _posixshmem
_posixsubprocess _py_abc _pydecimal _pyio _queue _random _scproxy _sha1 _sha256 _sha3 _sha512 _signal _sitebuiltins
_socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct _symtable _thread _threading_local _tkinter
_tokenize _tracemalloc _typing _uuid _warnings _weakref _weakrefset _winapi _zoneinfo abc aifc antigravity argparse
array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi
cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser contextlib
contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest
email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc
genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp
importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal
math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode
operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix
posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline
reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib
sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep
struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this
threading time timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing
unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc
zipapp zipfile zipimport zlib zoneinfo
"""
STANDARD = frozenset(_NAMES.split())
"""Top-level modules of Python 3.11's standard library. Published sample sets were built with this list."""


_ASIDE = frozenset({"test", "tests", "testing", "testdata", "fixtures", "doc", "docs", "example", "examples"})
_STANDARD = STANDARD - {"test"}
_INIT = "__init__.py"


class ModuleIndex:
    """Finds a repository's modules by dotted name."""

    def __init__(self, paths: Iterable[str], imported: Iterable[str]) -> None:
        """Find the folders where imports start. `imported` lists the modules that absolute imports name."""
        self._files = frozenset(paths)
        self._folders = frozenset(folder for path in self._files for folder in _parents(path))
        self._dotted = frozenset(part for name in imported for part in _tails(name))
        self._own = {path: self._root_of(path) for path in sorted(self._files)}
        sources = {folder for folder in self._folders if basename(folder) == "src" and not self._is_package(folder)}
        packages = {root for path, root in self._own.items() if self._is_package(dirname(path))}
        self._roots = sorted({""} | sources | packages, key=lambda root: (len(root), root))

    def _is_package(self, folder: str) -> bool:
        return _join(folder, _INIT) in self._files

    def _root_of(self, path: str) -> str:
        folder = dirname(path)
        # A repository with an __init__.py at its top is not a package, since its name is unknown.
        if not folder or not self._is_package(folder):
            return folder
        while folder and self._is_package(folder):
            top, folder = folder, dirname(folder)
        # The parents of a package may be namespace packages if an import names them.
        name, root = basename(top), folder
        while folder:
            name, folder = f"{basename(folder)}.{name}", dirname(folder)
            if name in self._dotted:
                root = folder
        return root

    def relative(self, path: str, level: int, module: str) -> str | None:
        """Return the file or folder that ``from <level dots><module> import …`` in `path` names; None if missing."""
        folder = dirname(path)
        for _ in range(level - 1):
            if not folder:
                return None
            folder = dirname(folder)
        if module:
            return self._below(folder, module)
        return _join(folder, _INIT) if self._is_package(folder) else folder

    def absolute(self, path: str, module: str) -> str | None:
        """Return the file or folder of a module that `path` imports absolutely; None if outside the repository."""
        if not module or module.partition(".")[0] in _STANDARD:
            return None
        for root in dict.fromkeys([self._own[path], dirname(path), *self._roots]):
            if not self._visible(root, path):
                continue
            place = self._below(root, module)
            # A bare folder of that name is probably a script folder, not the imported package.
            if place is not None and (place.endswith(".py") or "." in module):
                return place
        return None

    def _visible(self, root: str, path: str) -> bool:
        if root == dirname(path) and root != self._own[path]:
            return False  # inside a package, neighbours are reached only by relative imports
        aside = not _ASIDE.isdisjoint(root.split("/"))
        return not aside or path.startswith(root + "/")

    def _below(self, folder: str, module: str) -> str | None:
        place: str | None = folder
        for part in module.split("."):
            if place is None or place.endswith(".py"):
                return None
            place = self._child(place, part)
            if place is not None and basename(place) == _INIT:
                place = dirname(place)
        if place is not None and self._is_package(place):
            return _join(place, _INIT)
        return place

    def _child(self, folder: str, name: str) -> str | None:
        inner = _join(folder, name)
        for candidate in (_join(inner, _INIT), f"{inner}.py"):
            if candidate in self._files:
                return candidate
        return inner if inner in self._folders else None

    def submodule(self, place: str, name: str) -> str | None:
        """Return the file or folder of a package's submodule; None if the package has no such submodule."""
        if basename(place) == _INIT:
            return self._child(dirname(place), name)
        return None if place.endswith(".py") else self._child(place, name)

    def name(self, place: str) -> str:
        """Return the dotted module name of a file or folder, relative to the folder where absolute imports start."""
        stem = dirname(place) if basename(place) == _INIT else place.removesuffix(".py")
        root = self._own.get(place, "")
        if place not in self._own or not self._is_package(dirname(place)):
            inside = [root for root in self._roots if not root or stem.startswith(root + "/")]
            root = inside[-1] if inside else ""
        return stem[len(root) :].strip("/").replace("/", ".")


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _parents(path: str) -> list[str]:
    parents, folder = [], dirname(path)
    while folder:
        parents.append(folder)
        folder = dirname(folder)
    return parents


def _tails(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[start:end]) for start in range(len(parts)) for end in range(start + 2, len(parts) + 1)]


@dataclass(frozen=True, slots=True)
class PythonTarget:
    """The definition that a name refers to."""

    kind: str
    """``module``, ``class``, ``function``, ``variable`` or ``unknown``; ``outside`` only for `OUTSIDE`."""
    module: str
    place: str | None = None


OUTSIDE = PythonTarget("outside", "")
"""Target of a name that the repository only re-exports from another package."""


class Exports:
    """Follows imported names through a repository's modules to their definitions."""

    def __init__(self, files: Mapping[str, PythonFile], index: ModuleIndex) -> None:
        self.files, self.index = files, index
        self._members: dict[tuple[str, str], PythonTarget | None] = {}
        self._public: dict[str, frozenset[str]] = {}

    def place(self, path: str, item: ImportedName | StarImport) -> str | None:
        """Return the file or folder of the module that an import in `path` names; None if outside the repository."""
        if item.level:
            return self.index.relative(path, item.level, item.module)
        return self.index.absolute(path, item.module)

    def module(self, place: str) -> PythonTarget:
        """Return a target that refers to the whole module at `place`."""
        return PythonTarget("module", self.index.name(place), place)

    def imported(self, path: str, item: ImportedName) -> PythonTarget | None:
        """Return the target of a name imported in `path`; None if the name comes from outside the repository."""
        place = self.place(path, item)
        if place is None:
            return None
        if item.member is None:
            return self.module(place)
        target = self.member(place, item.member)
        if target is OUTSIDE:
            return None
        if target is None:
            # Created at run time, or defined by code outside the repository, but still part of the module's API.
            return PythonTarget("unknown", self.index.name(place)) if place in self.files else None
        return target

    def member(self, place: str, name: str) -> PythonTarget | None:
        """Return the target of `name` in the module at `place`, possibly `OUTSIDE`; None if there is no such name."""
        key = (place, name)
        if key not in self._members:
            self._members[key] = None  # ends cycles of imports
            self._members[key] = self._find(place, name)
        return self._members[key]

    def _find(self, place: str, name: str) -> PythonTarget | None:
        file = self.files.get(place)
        submodule = self.index.submodule(place, name)
        if file is not None:
            defined = file.definitions.get(name)
            passed_on = self._passed_on(file, name)
            if passed_on is not None and passed_on.kind == "unknown" and submodule is not None:
                return self.module(submodule)  # `from . import name` in a package's own __init__.py
            if passed_on is not None and (passed_on is not OUTSIDE or defined is None):
                return passed_on
            if defined is not None:
                return PythonTarget(defined, self.index.name(place))
        if submodule is not None:
            return self.module(submodule)
        return self._from_stars(file, name) if file is not None else None

    def _passed_on(self, file: PythonFile, name: str) -> PythonTarget | None:
        answer: PythonTarget | None = None
        for index in file.imported.get(name, ()):
            item = file.imports[index]
            if item.dotted and "." in item.module:
                item_place = self.index.absolute(file.path, item.bound)
                target = self.module(item_place) if item_place else None
            else:
                target = self.imported(file.path, item)
            if target is not None:
                answer = target
            elif answer is None:
                answer = OUTSIDE
        return answer

    def _from_stars(self, file: PythonFile, name: str) -> PythonTarget | None:
        for star in reversed(file.stars):
            place = self.place(file.path, star)
            if place is not None and name in self.public(place):
                return self.member(place, name)
        return None

    def public(self, place: str) -> frozenset[str]:
        """Return the names that a star import of the module at `place` binds."""
        if place not in self._public:
            self._public[place] = frozenset()  # ends cycles of star imports
            file = self.files.get(place)
            if file is not None:
                self._public[place] = self._names(file)
        return self._public[place]

    def _names(self, file: PythonFile) -> frozenset[str]:
        if file.exported is not None:
            return frozenset(file.exported)
        names = {*file.definitions, *file.imported}
        for star in file.stars:
            place = self.place(file.path, star)
            if place is not None:
                names |= self.public(place)
        return frozenset(name for name in names if not name.startswith("_"))
