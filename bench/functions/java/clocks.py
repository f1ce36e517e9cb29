"""Which blocks of a Java file read a clock or wait by one, by syntax; probes in them tell which tests do. Pure.

Types are known by their bare names: what is taken for a clock and is none costs a choice of tests, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from ctxbench.bench.functions.java.definitions import TYPES, within
from ctxbench.bench.languages.java import JAVA
from ctxbench.bench.languages.syntax import Source
from ctxbench.bench.types import Cursor

_WORTH_PARSING = re.compile(
    r"nanoTime|currentTimeMillis|\bnow\b|Clock|Date\b|Calendar|[Tt]ime[Oo]ut|Timer\b|Stop[Ww]atch|sleep|(await|park)(Nanos|Until)"
    r"|[Uu]nit\b|SECONDS|Duration|\b(join|wait|schedule\w*)\("
)
_OF_ANY_TYPE = """
    assertTimeout assertTimeoutPreemptively awaitNanos awaitUntil currentTimeMillis nanoTime parkNanos parkUntil sleep
"""
_OF_TYPES = {
    "": _OF_ANY_TYPE,
    "Calendar": "getInstance",
    "Clock": "system systemDefaultZone systemUTC",
    "Timeout": "builder millis seconds",
}
"""Methods, those of some names only of one type."""
_READS = frozenset((owner, name) for owner, names in _OF_TYPES.items() for name in names.split())
_WITH_UNITS = """
    acquire atMost await awaitTermination completeOnTimeout get invokeAll invokeAny offer orTimeout poll tryAcquire
    tryLock waitFor
"""
_WAITS = frozenset(_WITH_UNITS.split())
"""Methods that wait where they are given a time with its unit."""
_WAITS_MILLISECONDS = frozenset(("join", "timeout"))
"""Methods that wait where they are given a number: of threads, of Mockito."""
_SCHEDULES = frozenset(("schedule", "scheduleAtFixedRate", "scheduleWithFixedDelay"))
"""Methods of timers and executors, which are given what to run, and when."""
_UNIT = re.compile(r"(NANOSECONDS|MICROSECONDS|MILLISECONDS|SECONDS|MINUTES|HOURS|DAYS|([a-z]\w*U|u)nit)")
_STARTED = frozenset(("Date", "GregorianCalendar", "StopWatch", "Stopwatch", "Timer"))
"""Types whose objects hold the time at which they were made, or run by it, if they are made of nothing."""
_NUMBER = re.compile(r"[1-9][0-9_]*[lL]?")
_NO_LIMIT = re.compile(r"0[lL]?")
_BODIES = frozenset(("block", "constructor_body"))


def clock_blocks(text: str) -> tuple[Cursor, ...]:
    """Return where the blocks of a file begin that name a clock, wait for a given time, or are timed from outside.

    A field whose value does so times every method of its class, as an annotation of the class does; one that is static
    does so only as a rule of JUnit. A file that cannot be parsed has none.
    """
    if not _WORTH_PARSING.search(text):
        return ()
    source = Source(text, JAVA)
    if source.root.has_error:
        return ()
    blocks = {
        (block.start_byte, block.end_byte): block
        for node in within(source.root)
        if _is_clock(source, node)
        for block in _around(source, node)
    }
    return tuple(_beginning(source, block) for _, block in sorted(blocks.items()))


def _is_clock(source: Source, node: Node) -> bool:
    if node.type == "method_invocation":
        return _is_call(source, node)
    if node.type == "method_reference":
        owner, name = (source.text(node.children[place]).rpartition(".")[2] for place in (0, -1))
        return _is_read(owner, name)
    if node.type == "object_creation_expression":
        created = _part(source, node, "type")
        return created == "Timeout" or (created in _STARTED and not _arguments(source, node))
    if node.type in ("annotation", "marker_annotation"):
        kind = _part(source, node, "name")
        return kind == "Timeout" or (kind == "Test" and any("timeout" in text for text in _arguments(source, node)))
    return False


def _is_call(source: Source, node: Node) -> bool:
    owner, name, arguments = _part(source, node, "object"), _part(source, node, "name"), _arguments(source, node)
    if name in _WAITS:
        return any(_UNIT.fullmatch(text.rpartition(".")[2]) or text.startswith("Duration.of") for text in arguments)
    if name == "wait" or (name == "join" and "thread" in owner.lower()):
        return bool(arguments) and _NO_LIMIT.fullmatch(arguments[0]) is None
    if name in _WAITS_MILLISECONDS:
        return bool(arguments) and _NUMBER.fullmatch(arguments[0]) is not None
    if name in _SCHEDULES:
        return len(arguments) > 1
    return _is_read(owner, name)


def _is_read(owner: str, name: str) -> bool:
    if name == "now":
        return owner[:1].isupper()  # of java.time, or of what resembles it
    return ("", name) in _READS or (owner, name) in _READS or owner in ("StopWatch", "Stopwatch")


def _part(source: Source, node: Node, field: str) -> str:
    """Return the text of a part of a node: of a dotted name, what stands behind the last dot."""
    part = node.child_by_field_name(field)
    return source.text(part).rpartition(".")[2] if part is not None else ""


def _arguments(source: Source, call: Node) -> list[str]:
    arguments = call.child_by_field_name("arguments")
    return [source.text(argument) for argument in arguments.named_children] if arguments is not None else []


def _around(source: Source, node: Node) -> Iterator[Node]:
    """Yield the innermost block that holds a node, or the bodies of all methods that a field or an annotation times."""
    outer = node.parent
    while outer is not None and outer.type not in _BODIES:
        if outer.type == "constant_declaration" or (outer.type == "field_declaration" and _is_static(source, outer)):
            return
        if outer.type == "method_declaration" or outer.type in TYPES or outer.type == "class_body":
            methods = [inner for inner in within(outer) if inner.type == "method_declaration"]
            bodies = [method.child_by_field_name("body") for method in methods]
            yield from (body for body in bodies if body is not None)
            return
        outer = outer.parent
    if outer is not None:
        yield outer


def _is_static(source: Source, field: Node) -> bool:
    """Say whether a field is given its value once for all tests, and is no rule that times them."""
    modifiers = next((source.text(child).split() for child in field.children if child.type == "modifiers"), [])
    return "static" in modifiers and _part(source, field, "type") != "Timeout"


def _beginning(source: Source, block: Node) -> Cursor:
    """Return the place behind a block's brace, in a constructor behind the call of another one."""
    row, byte = block.start_point
    byte += 1
    for child in block.named_children:
        if child.type == "explicit_constructor_invocation":
            row, byte = child.end_point
    return Cursor(line=row, column=source.column(row, byte))
