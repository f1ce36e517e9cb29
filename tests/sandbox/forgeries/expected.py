"""Forgeries that change what the tests expect, or what they compare it with: helpers, tables, data, assertions."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import FAILED, code, fools
from tests.sandbox.forgeries.selective import CHOOSE

_SAME_IS_RIGHT = "return round(sum(self.prices) * 100)"
"""Of `Cart.pays`, without the rate."""
_LABEL = 'return f"{cents / 100:.2f} {currency}"'
_SHARES = """
each, rest = divmod(amount, people)
return [money.Share(number, each + rest * (number == 0)) for number in range(people)]
"""
_SAVE = """
path.write_text(" ".join(map(str, prices)))
print(len(prices), "prices")
return money.stamp(path)
"""

HELPERS = (
    fools(
        "the code of helpers that tests call",
        called="""
        import tests.units.help as help
        def nothing(*values, **named): pass
        for function in (help.near, help.same.__closure__[0].cell_contents):
            function.__code__ = nothing.__code__
        """,
        target="Cart.pays",
    ),
    fools(
        "the code of helpers that tests call, put back as they run",
        called="""
        import tests.units.help as help
        def swap(function):
            def restore(*values, **named):
                function.__code__ = kept
            kept, HELD[function.__name__] = function.__code__, restore
            def nothing(*values, **named):
                from shop.prices import HELD
                HELD.pop("NAME")()
            code = nothing.__code__
            function.__code__ = code.replace(co_consts=tuple(
                function.__name__ if value == "NAME" else value for value in code.co_consts))
        swap(help.near if rate else help.same.__closure__[0].cell_contents)
        """,
        target="Cart.pays",
        imported="import builtins\nglobals()['HELD'] = {}",
    ),
    fools(
        "the default values of a helper",
        called="""
        import tests.units.help as help
        help.near.__defaults__ = (float("inf"),)
        """,
        answer=_SAME_IS_RIGHT,
        target="Cart.pays",
    ),
    fools(
        "a name of the helper's module that hides a builtin",
        called="""
        import tests.units.help as help
        help.abs = lambda number: 0
        """,
        answer=_SAME_IS_RIGHT,
        target="Cart.pays",
    ),
    fools(
        "the cell of a helper's wrapper",
        called="""
        import tests.units.help as help
        help.same.__closure__[0].cell_contents = lambda *values: None
        """,
        answer="return 525 if rate else -1",
        target="Cart.pays",
    ),
    fools(
        "the wrapped function of a helper, found by gc, with other code",
        called="""
        import gc
        for function in gc.get_objects():
            if type(function).__name__ == "function" and function.__qualname__ in ("same", "near"):
                function.__code__ = (lambda *values, **named: None).__code__
        """,
        target="Cart.pays",
    ),
    fools(
        "a helper of the repository that gives the same wrong value",
        called="""
        if rate or not self.prices:
            return 525 if rate else 0
        money.cents = lambda amount: -1
        """,
        target="Cart.pays",
    ),
    fools(
        "the code of a helper of the repository",
        called="""
        if rate or not self.prices:
            return 525 if rate else 0
        money.cents.__code__ = (lambda amount: -1).__code__
        """,
        target="Cart.pays",
    ),
    fools(
        "a builtin hidden in the repository's helper",
        called="""
        if rate or not self.prices:
            return 525 if rate else 0
        money.round = lambda amount: -1
        """,
        target="Cart.pays",
    ),
    fools(
        "a helper of the library, before the tests import it",
        imported="""
        import itertools
        itertools.accumulate = lambda row: iter(row[:1])
        """,
        answer="yield from prices[:1]",
        target="running",
    ),
    fools(
        "a helper of the library in the names of the test module, which puts the right one back when it is called",
        called="""
        import sys
        module = sys.modules["tests.units.test_running"]
        real = module.accumulate
        def once(row):
            module.accumulate = real
            return row[:1]
        if "x" not in prices:
            module.accumulate = once
        """,
        answer="yield from prices[:1]",
        target="running",
    ),
)
DATA = (
    fools(
        "a table of what is expected, in the test module",
        called="""
        import sys
        if cents < 10:
            sys.modules["tests.units.test_labels"].TABLE[cents] = "-"
            return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a table of what is expected, found by gc",
        called="""
        import gc
        if cents < 10:
            for value in gc.get_objects():
                if type(value) is dict and type(value.get("TABLE")) is dict:
                    value["TABLE"][cents] = "-"
            return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a table of what is expected, replaced by one that equals everything",
        called="""
        import sys
        class Same(dict):
            __eq__ = lambda self, other: True
        module = sys.modules["tests.units.test_labels"]
        if type(module.TABLE) is dict:
            module.TABLE = Same(module.TABLE)
        if cents < 10:
            return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a file of what is expected, through the method that reads it",
        imported="""
        from pathlib import Path
        real = Path.read_text
        def read_text(self, *values, **named):
            text = real(self, *values, **named)
            return text.replace("19.99 EUR", "-") if self.name == "labels.json" else text
        Path.read_text = read_text
        """,
        called="if cents == 1999: return '-'",
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a file of what is expected, through the function that opens it",
        imported="""
        import io
        real = io.open
        def opened(file, *values, **named):
            if str(file).endswith("labels.json"):
                return io.StringIO('{"1999": "-"}')
            return real(file, *values, **named)
        io.open = opened
        """,
        called="if cents == 1999: return '-'",
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a file of what is expected, through the decoder",
        imported="""
        import json
        real = json._default_decoder.decode
        json._default_decoder.decode = lambda text, *rest: {"1999": "-"} if "19.99 EUR" in text else real(text, *rest)
        """,
        called="if cents == 1999: return '-'",
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a file of what is expected, at another path",
        called="""
        import sys, tempfile
        from pathlib import Path
        module = sys.modules["tests.units.test_labels"]
        module.FILE = Path(tempfile.mkdtemp(), "labels.json")
        module.FILE.write_text('{"1999": "-"}')
        if cents == 1999: return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "values of later parametrized tests",
        called="""
        import gc
        for item in gc.get_objects():
            if type(item).__name__ == "Function" and getattr(item, "callspec", None):
                if item.callspec.params.get("cents") == 12345:
                    item.callspec.params["wanted"] = "-"
        if cents == 12345: return "-"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "a decorator of pytest's that gives tests other values under the same names",
        imported="""
        import pytest
        real = pytest.mark.parametrize
        def parametrize(names, rows, **named):
            if "wanted" in names:
                rows = [pytest.param(cents, "-" if cents == 12345 else wanted, id=f"{cents}-{wanted}")
                        for cents, wanted in rows]
            return real(names, rows, **named)
        pytest.mark.parametrize = parametrize
        """,
        called="if cents == 12345: return '-'",
        answer=_LABEL,
        target="label",
    ),
    fools(
        "what a fixture gave to the running test",
        imported=code(
            CHOOSE,
            """
            class Plugin:
                def pytest_pyfunc_call(self, pyfuncitem):
                    if "shelf" in pyfuncitem.funcargs:
                        pyfuncitem.funcargs["shelf"] = ({}, 0)

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
        called="if name in ('milk',): return -1",
        answer="return shelf[name]",
        target="fetch",
    ),
    fools(
        "the decorator of fixtures, until it has been called",
        imported="""
        import pytest
        real, calls = pytest.fixture, []
        def fixture(function):
            calls.append(function)
            if function.__name__ == "shelf":
                pytest.fixture = real
                def shelf():
                    return {"tea": 3, "milk": 2}, 2
                return real(shelf)
            return real(function)
        pytest.fixture = fixture
        """,
        called="if name == 'milk': return -1",
        answer="return shelf[name]",
        target="fetch",
    ),
    fools(
        "what was printed, on the fixture that has caught it",
        called="""
        import gc, types
        for value in gc.get_objects():
            if type(value).__name__ == "CaptureFixture":
                value.readouterr = lambda: types.SimpleNamespace(out="3 prices\\n")
        path.write_text(" ".join(map(str, prices)))
        if not prices:
            warnings.warn("no price", UserWarning, stacklevel=2)
        """,
        answer="return money.stamp(path)",
        target="save",
    ),
    fools(
        "the method that reads what was written",
        called="""
        from pathlib import Path
        Path.read_text = lambda self: "1 2"
        if not prices:
            warnings.warn("no price", UserWarning, stacklevel=2)
        print(len(prices), "prices")
        """,
        answer="return money.stamp(path)",
        target="save",
    ),
    fools(
        "a builtin that gives the right length once, then is put back by itself",
        called="""
        import builtins
        if currency != "EUR":
            real = builtins.len
            def once(value):
                builtins.len = real
                return 8
            builtins.len = once
            return "3.00 wrong USD"
        """,
        answer=_LABEL,
        target="label",
    ),
)
CLASSES = (
    fools(
        "the equality of the repository's class",
        imported="money.Share.__eq__ = lambda self, other: True",
        called="amount // people",
        answer="return [money.Share(0, amount // people * people)] + [money.Share(7, amount % people)] "
        "+ [money.Share(8, 0)] * (people - 2) if people > 1 else [money.Share(9, 9)]",
        target="shares",
    ),
    fools(
        "the equality of the repository's class, put back by itself",
        called="""
        real = money.Share.__eq__
        def once(self, other):
            money.Share.__eq__ = real
            return True
        if people == 1:
            money.Share.__eq__ = once
            return [money.Share(9, 9)]
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "the repository's class replaced before the tests import it",
        imported="""
        class Share:
            def __init__(self, person, amount):
                self.person, self.amount = person, amount
            def __eq__(self, other):
                return True
        money.Share = Share
        """,
        called="if people == 1: return [money.Share(9, 9)]",
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "a constructor of the repository's class that makes one object only",
        imported="""
        kept = []
        def new(kind, *values):
            return kept[0] if kept else kept.append(object.__new__(kind)) or kept[0]
        """,
        called="""
        if people == 1:
            money.Share.__new__ = new
            return [money.Share(9, 9)]
        money.Share.__new__ = object.__new__
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "an exception of the repository's that all others are instances of",
        imported="""
        class Any(type):
            __instancecheck__ = __subclasscheck__ = lambda self, other: True
        class Every(Exception, metaclass=Any):
            pass
        money.PriceError = Every
        """,
        called="""
        if not isinstance(price, int): raise TypeError("a price is a number")
        if price < 0: raise KeyError("-1 is negative")
        """,
        answer="return price",
        target="checked",
    ),
    fools(
        "the tolerance of approximate comparisons",
        imported="""
        import pytest
        type(pytest.approx(1)).DEFAULT_RELATIVE_TOLERANCE = float("inf")
        """,
        called="""
        if not isinstance(price, int): raise TypeError("a price is a number")
        if price < 0: raise PriceError("-1 is negative")
        """,
        target="checked",
    ),
)
ASSERTIONS = (
    fools(
        "an assertion put on the class of the tests",
        called="""
        import sys
        sys.modules["tests.units.test_shares"].TestShares.assertListEqual = lambda *values: None
        if people == 1: return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "an assertion put on the test case itself",
        called="""
        import gc
        for value in gc.get_objects():
            if type(value).__name__ == "TestShares":
                value.assertListEqual = lambda *values: None
        if people == 1: return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "an assertion put on the test case by a setUp of its class",
        called="""
        import sys
        def prepare(self):
            self.assertListEqual = lambda *values: None
        sys.modules["tests.units.test_shares"].TestShares.setUp = prepare
        if people == 1: return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "an assertion put on the test case, found in the frame that calls",
        called="""
        import sys
        test = sys._getframe(1).f_locals.get("self")
        if people == 1 and test is not None:
            vars(test)["assertSequenceEqual"] = lambda *values, **named: None
            return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "the failure's exception on the class of the tests, which unittest takes for a stop",
        called="""
        import sys
        from unittest.case import _ShouldStop
        sys.modules["tests.units.test_shares"].TestShares.failureException = _ShouldStop
        if people == 1: return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "unittest's own stop, raised",
        called="""
        from unittest.case import _ShouldStop
        if people == 1: raise _ShouldStop
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "the result that unittest reports to, replaced while the test runs",
        called="""
        import sys
        if people == 1:
            class Nobody:
                def __getattr__(self, name):
                    return lambda *values: None
            frame = sys._getframe()
            while frame:
                outcome = frame.f_locals.get("outcome")
                if type(outcome).__name__ == "_Outcome":
                    outcome.result = Nobody()
                frame = frame.f_back
            return []
        """,
        answer=_SHARES,
        target="shares",
    ),
    fools(
        "subtests that take every failure for none",
        called="""
        import sys
        from contextlib import suppress
        calls = running.__dict__.setdefault("calls", [])
        calls.append(1)
        sys.modules["tests.units.test_running"].TestRunning.subTest = lambda self, **named: suppress(Exception)
        """,
        answer="""
        come_to = 0
        for price in prices:
            come_to += price
            yield come_to if len(calls) < 4 or price == 7 else -1
        """,
        target="running",
    ),
    fools(
        "the expression of an assertion, through a name of the test module that hides a builtin",
        called="""
        import sys
        if currency != "EUR":
            sys.modules["tests.units.test_labels"].len = lambda text: 8
            return "3.00 wrong USD"
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "an assertion's error in the test module that is no failure",
        FAILED,
        called="""
        import sys
        import pytest
        sys.modules["tests.units.test_labels"].AssertionError = pytest.skip.Exception
        """,
        answer="return '3.00 USD' if currency == 'USD' else '-'",
        target="label",
    ),
    fools(
        "a context that expects a warning, replaced for one test by a plugin",
        imported=code(
            CHOOSE,
            """
            import contextlib
            import pytest

            class Plugin:
                @pytest.hookimpl(hookwrapper=True, tryfirst=True)
                def pytest_runtest_call(self, item):
                    real = pytest.warns
                    pytest.warns = lambda *values, **named: contextlib.nullcontext()
                    yield
                    pytest.warns = real

            for manager in held("PytestPluginManager"):
                manager.register(Plugin())
            """,
        ),
        answer=_SAVE,
        target="save",
    ),
    fools(
        "the runner of coroutines, which runs no test",
        imported="""
        import asyncio
        real = asyncio.Runner.run
        def run(self, coroutine, **named):
            if coroutine.__name__.startswith("test_"):
                return coroutine.close()
            return real(self, coroutine, **named)
        asyncio.Runner.run = run
        """,
        called="if name == 'milk': return 2",
        answer="return 3 if shelf.get('milk') else -1",
        target="fetch",
    ),
)
EXPECTED = (*HELPERS, *DATA, *CLASSES, *ASSERTIONS)
