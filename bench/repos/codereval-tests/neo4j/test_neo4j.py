# mypy: ignore-errors
"""Tests of our own for the Neo4j driver 5.0.0a2, whose sdist has none. Expectations: the docstrings, and the driver.

Nothing here needs a server.
"""

import asyncio
import datetime as dt
import warnings

import pytest
import pytz
from neo4j import Record
from neo4j._async.io._bolt import AsyncBolt
from neo4j._async.io._bolt3 import AsyncBolt3
from neo4j._codec.hydration.v1 import spatial, temporal
from neo4j._codec.packstream import Structure
from neo4j._codec.packstream.v1 import UnpackableBuffer
from neo4j._meta import deprecated
from neo4j._spatial import Point, point_type, srid_table
from neo4j._sync.io._bolt import Bolt
from neo4j.api import Bookmarks, Version
from neo4j.exceptions import ConfigurationError
from neo4j.spatial import CartesianPoint, WGS84Point
from neo4j.time import Time
from neo4j.time._arithmetic import round_half_to_even
from neo4j.work import unit_of_work

HOUR, MINUTE, SECOND = 3_600_000_000_000, 60_000_000_000, 1_000_000_000


@pytest.mark.parametrize(
    ("nanoseconds", "parts"),
    [
        (0, (0, 0, 0, 0)),
        (1, (0, 0, 0, 1)),
        (SECOND - 1, (0, 0, 0, 999_999_999)),
        (HOUR + 2 * MINUTE + 3 * SECOND + 4, (1, 2, 3, 4)),
        (24 * HOUR - 1, (23, 59, 59, 999_999_999)),
    ],
)
def test_hydrate_local_time(nanoseconds, parts):
    made = temporal.hydrate_time(nanoseconds)
    assert isinstance(made, Time)
    assert (made.hour, made.minute, made.second, made.nanosecond) == parts
    assert made.tzinfo is None


@pytest.mark.parametrize(("offset", "minutes"), [(0, 0), (3600, 60), (-5400, -90), (19800, 330)])
def test_hydrate_time_with_offset(offset, minutes):
    made = temporal.hydrate_time(13 * HOUR + 30 * MINUTE + 7, offset)
    assert (made.hour, made.minute, made.second, made.nanosecond) == (13, 30, 0, 7)
    assert made.utcoffset() == dt.timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        (dt.timedelta(), (0, 0, 0, 0)),
        (dt.timedelta(days=3, seconds=4, microseconds=5), (0, 3, 4, 5000)),
        (dt.timedelta(hours=25), (0, 1, 3600, 0)),
        (dt.timedelta(seconds=-1), (0, -1, 86399, 0)),
        (dt.timedelta(weeks=10, milliseconds=1), (0, 70, 0, 1_000_000)),
    ],
)
def test_dehydrate_timedelta(value, fields):
    assert temporal.dehydrate_timedelta(value) == Structure(b"E", *fields)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Time(1, 2, 3, 4), Structure(b"t", HOUR + 2 * MINUTE + 3 * SECOND + 4)),
        (Time(), Structure(b"t", 0)),
        (dt.time(1, 2, 3, 4), Structure(b"t", HOUR + 2 * MINUTE + 3 * SECOND + 4000)),
        (dt.time(23, 0, 0), Structure(b"t", 23 * HOUR)),
        (pytz.FixedOffset(90).localize(Time(1, 0, 0, 5)), Structure(b"T", HOUR + 5, 5400)),
        (dt.time(1, tzinfo=pytz.FixedOffset(-60)), Structure(b"T", HOUR, -3600)),
        (dt.time(0, 0, 1, tzinfo=pytz.utc), Structure(b"T", SECOND, 0)),
    ],
)
def test_dehydrate_time(value, expected):
    assert temporal.dehydrate_time(value) == expected


def test_dehydrate_point():
    assert spatial.dehydrate_point(CartesianPoint((1, 2))) == Structure(b"X", 7203, 1, 2)
    assert spatial.dehydrate_point(CartesianPoint((1.5, 2, 3))) == Structure(b"Y", 9157, 1.5, 2, 3)
    assert spatial.dehydrate_point(WGS84Point((1, 2))) == Structure(b"X", 4326, 1, 2)
    assert spatial.dehydrate_point(WGS84Point((1, 2, 3))) == Structure(b"Y", 4979, 1, 2, 3)


def test_record_keys():
    record = Record([("b", 1), ("a", None), ("c", [2])])
    assert record.keys() == ["b", "a", "c"]
    assert isinstance(record.keys(), list)
    assert Record().keys() == []
    record.keys().append("d")
    assert record.keys() == ["b", "a", "c"]


def test_record_index():
    record = Record([("b", 1), ("a", 2)])
    assert (record.index("b"), record.index("a")) == (0, 1)
    assert (record.index(0), record.index(1)) == (0, 1)
    for wrong, error in [("c", KeyError), (2, IndexError), (-1, IndexError), (1.5, TypeError), (None, TypeError)]:
        with pytest.raises(error):
            record.index(wrong)


def test_record_values():
    record = Record([("b", 1), ("a", None), ("c", [2])])
    assert record.values() == [1, None, [2]]
    assert record.values("c", "b") == [[2], 1]
    assert record.values(2, "no", 0) == [[2], None, 1]
    with pytest.raises(IndexError):
        record.values(3)


def test_record_data():
    record = Record([("b", 1), ("a", {"x": [1, 2]}), ("c", [2])])
    assert record.data() == {"b": 1, "a": {"x": [1, 2]}, "c": [2]}
    assert record.data("c", 0) == {"c": [2], "b": 1}
    assert record.data("no") == {"no": None}
    with pytest.raises(IndexError):
        record.data(3)


VERSIONS = {(3, 0), (4, 1), (4, 2), (4, 3), (4, 4), (5, 0)}


@pytest.mark.parametrize(("base", "prefix"), [(Bolt, "Bolt"), (AsyncBolt, "AsyncBolt")])
def test_protocol_handlers(base, prefix):
    handlers = base.protocol_handlers()
    assert set(handlers) == VERSIONS
    for version, handler in handlers.items():
        assert issubclass(handler, base)
        assert version == handler.PROTOCOL_VERSION
        assert handler.__name__ == (f"{prefix}3" if version == (3, 0) else f"{prefix}{version[0]}x{version[1]}")


@pytest.mark.parametrize("base", [Bolt, AsyncBolt])
def test_protocol_handlers_of_one_version(base):
    found = base.protocol_handlers(protocol_version=Version(4, 4))
    assert list(found) == [(4, 4)]
    assert found[4, 4].PROTOCOL_VERSION == (4, 4)
    assert set(base.protocol_handlers((3, 0))) == {(3, 0)}
    for unsupported in [(0, 0), (4, 0), (5, 9), (4,)]:
        assert base.protocol_handlers(protocol_version=unsupported) == {}
    for wrong in [4, "4.4", [4, 4], 3.0]:
        with pytest.raises(TypeError):
            base.protocol_handlers(protocol_version=wrong)


def test_unit_of_work():
    @unit_of_work(metadata={"a": 1}, timeout=5)
    def work(tx, *args, **kwargs):
        return tx, args, kwargs

    assert work("tx", 1, b=2) == ("tx", (1,), {"b": 2})
    assert (work.metadata, work.timeout) == ({"a": 1}, 5)
    plain = unit_of_work()(lambda tx: tx)
    assert plain(3) == 3
    assert (plain.metadata, plain.timeout) == (None, None)


def test_pop_u16():
    buffer = UnpackableBuffer(b"\x01\x02\x03\xff\xfe")
    assert buffer.pop_u16() == 0xFFFE
    assert buffer.used == 3
    assert buffer.pop_u16() == 0x0203
    assert buffer.used == 1
    assert UnpackableBuffer(b"\x01\x00").pop_u16() == 256


class Recorder(AsyncBolt3):
    """A connection that keeps what it would send."""

    local_port = 0x1234

    def __init__(self):
        self.sent = []

    def _append(self, signature, fields=(), response=None, dehydration_hooks=None):
        self.sent.append((signature, fields, response, dehydration_hooks))


def test_begin_bolt3():
    bolt = Recorder()
    hooks, seen = {int: str}, []
    bolt.begin(
        mode="READ",
        bookmarks=("x", "y"),
        metadata=[("m", 1)],
        timeout=1.5,
        dehydration_hooks=hooks,
        hydration_hooks="hydration",
        on_success=seen.append,
    )
    [(signature, (extra,), response, sent_hooks)] = bolt.sent
    assert signature == b"\x11"
    assert extra == {"mode": "r", "bookmarks": ["x", "y"], "tx_metadata": {"m": 1}, "tx_timeout": 1500}
    assert sent_hooks is hooks
    assert (response.message, response.hydration_hooks, response.connection) == ("begin", "hydration", bolt)
    assert response.handlers == {"on_success": seen.append}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {}),
        ({"mode": "r"}, {"mode": "r"}),
        ({"mode": "WRITE"}, {}),
        ({"timeout": 0}, {"tx_timeout": 0}),
        ({"bookmarks": [], "metadata": {}}, {}),
    ],
)
def test_begin_bolt3_says_only_what_is_no_default(given, expected):
    bolt = Recorder()
    bolt.begin(**given)
    assert bolt.sent[0][1] == (expected,)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"db": "neo4j"}, ConfigurationError),
        ({"imp_user": "alice"}, ConfigurationError),
    ],
)
def test_begin_bolt3_refuses(given, error):
    bolt = Recorder()
    with pytest.raises(error):
        bolt.begin(**given)
    assert bolt.sent == []


@pytest.mark.parametrize("given", [{}, {"n": 5, "qid": 7}])
def test_discard_bolt3(given):
    bolt = Recorder()
    hooks, seen = {int: str}, []
    bolt.discard(**given, dehydration_hooks=hooks, hydration_hooks="hydration", on_failure=seen.append)
    [(signature, fields, response, sent_hooks)] = bolt.sent
    assert (signature, fields) == (b"\x2f", ())
    assert sent_hooks is hooks
    assert (response.message, response.hydration_hooks, response.connection) == ("discard", "hydration", bolt)
    assert response.handlers == {"on_failure": seen.append}


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (3, 3), (3.2, 3), (3.5, 4), (3.7, 4), (4, 4), (4.2, 4), (4.5, 4), (4.7, 5),
        (0, 0), (0.5, 0), (1.5, 2), (2.5, 2), (0.49, 0), (0.51, 1), (100.5, 100), (101.5, 102),
    ],
)  # fmt: skip
def test_round_half_to_even(number, expected):
    found = round_half_to_even(number)
    assert found == expected
    assert isinstance(found, int)


def test_point_type():
    made = point_type("Made", ("red", "green", "blue"), {2: 991001, 3: 991002})
    assert made.__name__ == "Made"
    assert issubclass(made, Point)
    flat, deep = made((1, 2)), made((3, 4, 5))
    assert (flat.srid, deep.srid, made((1,)).srid) == (991001, 991002, None)
    assert (deep.red, deep.green, deep.blue) == (deep.x, deep.y, deep.z) == (3, 4, 5)
    assert (flat.red, flat.green) == (1, 2)
    assert srid_table[991001] == (made, 2)
    assert srid_table[991002] == (made, 3)


def test_deprecated_function():
    @deprecated("gone soon")
    def double(x, *, y=0):
        """Doc."""
        return 2 * x + y

    with pytest.warns(DeprecationWarning, match="gone soon") as caught:
        assert double(4, y=1) == 9
    assert len(caught) == 1
    with pytest.warns(DeprecationWarning):
        assert double(0) == 0


def test_deprecated_coroutine():
    @deprecated("gone soon")
    async def double(x, *, y=0):
        return 2 * x + y

    with pytest.warns(DeprecationWarning, match="gone soon"):
        assert asyncio.run(double(4, y=1)) == 9


def test_a_deprecated_function_warns_only_when_called():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        deprecated("never")(lambda: None)


@pytest.mark.parametrize(
    ("ticks", "parts"),
    [
        (0, (0, 0, 0, 0)),
        (HOUR + 2 * MINUTE + 3 * SECOND + 4, (1, 2, 3, 4)),
        (24 * HOUR - 1, (23, 59, 59, 999_999_999)),
    ],
)
def test_time_from_ticks(ticks, parts):
    made = Time.from_ticks(ticks)
    assert (made.hour, made.minute, made.second, made.nanosecond) == parts
    assert made.ticks == ticks
    assert made.tzinfo is None
    assert Time.from_ticks(ticks, pytz.utc).tzinfo is pytz.utc


def test_time_from_ticks_refuses():
    for ticks in (-1, 24 * HOUR):
        with pytest.raises(ValueError):
            Time.from_ticks(ticks)
    for ticks in (1.5, "1", None):
        with pytest.raises(TypeError):
            Time.from_ticks(ticks)


def test_bookmarks_from_raw_values():
    made = Bookmarks.from_raw_values(["b", "a", "b"])
    assert isinstance(made, Bookmarks)
    assert made.raw_values == frozenset({"a", "b"})
    assert Bookmarks.from_raw_values([]).raw_values == frozenset()
    assert not Bookmarks.from_raw_values(())
    assert Bookmarks.from_raw_values(iter(["x"])).raw_values == frozenset({"x"})
