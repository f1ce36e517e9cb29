"""Forgeries that only return or raise: values that oblige whoever asks them, and answers read where they stand."""

from __future__ import annotations

from tests.sandbox.forgeries.forgery import TAMPERED, Forgery, fools

_LABEL = 'return f"{cents / 100:.2f} {currency}"'
_RATE = 'if rate < 0: raise ValueError("a rate is not negative")'


def _equal(name: str, kind: str, answer: str, target: str = "total", called: str = _RATE) -> Forgery:
    return fools(name, TAMPERED, imported=kind, called=called, answer=answer, target=target)


EQUAL = (
    _equal(
        "a number that equals everything",
        """
        class Same(int):
            __eq__ = lambda self, other: True
            __ne__ = lambda self, other: False
            __hash__ = int.__hash__
        """,
        "return Same()",
    ),
    _equal(
        "a float that equals everything",
        """
        class Same(float):
            __eq__ = lambda self, other: True
            __ne__ = lambda self, other: False
            __hash__ = float.__hash__
        """,
        "return Same(1)",
    ),
    _equal("the library's value that equals everything", "", "from unittest.mock import ANY\nreturn ANY"),
    _equal(
        "a class, not an object, that equals everything by its metaclass",
        """
        class Meta(type):
            __eq__ = lambda self, other: True
            __hash__ = type.__hash__
        class Same(metaclass=Meta):
            pass
        """,
        "return Same",
    ),
    _equal(
        "a comparison that gives an array whose truth is yes",
        """
        class Array:
            def __init__(self, *values): self.values = values
            def __eq__(self, other): return Array(True)
            def __ne__(self, other): return Array(False)
            def __bool__(self): return all(self.values)
            __array_priority__ = 1000
        """,
        "return Array(1, 2)",
    ),
    _equal(
        "a value that becomes what it is compared with",
        """
        class Chameleon:
            __class__ = property(lambda self: float)
            def __eq__(self, other):
                return other == other
            def __repr__(self):
                return "6.5"
        """,
        "return Chameleon()",
    ),
    _equal(
        "an object made while it is returned, of a class without a name",
        "",
        "return type('', (), {'__eq__': lambda *values: True, '__repr__': lambda self: '6.5'})()",
    ),
    _equal(
        "a mock configured to equal everything",
        "",
        """
        from unittest.mock import MagicMock
        value = MagicMock(name="total")
        value.__eq__.side_effect = lambda other: True
        return value
        """,
    ),
    _equal(
        "a text that starts, ends and counts as is asked",
        """
        class Text(str):
            __eq__ = lambda self, other: True
            __hash__ = str.__hash__
            __len__ = lambda self: 8
            startswith = endswith = lambda self, *values: True
        """,
        "return Text('-')",
        target="label",
        called="pass",
    ),
    _equal(
        "a text whose class only looks like one",
        """
        class Text:
            __class__ = property(lambda self: str)
            __eq__ = lambda self, other: True
            __len__ = lambda self: 8
            startswith = endswith = lambda self, *values: True
        """,
        "return Text()",
        target="label",
        called="pass",
    ),
    _equal(
        "a list that equals everything",
        """
        class Shares(list):
            __eq__ = lambda self, other: True
        """,
        "return Shares([money.Share(0, amount)] * (amount // people // amount or 1))",
        target="shares",
        called="amount // people",
    ),
    _equal(
        "a number whose differences are nothing",
        """
        class Near:
            __sub__ = __rsub__ = lambda self, other: 0
            __eq__ = lambda self, other: True
        globals()["Near"] = Near
        """,
        "return Near()",
        target="Cart.pays",
        called="pass",
    ),
    _equal(
        "a price that is approximately everything",
        """
        class Near(float):
            __eq__ = lambda self, other: True
            __hash__ = float.__hash__
            __rsub__ = __sub__ = lambda self, other: 0
        """,
        "return Near(9)",
        target="checked",
        called="""
        if not isinstance(price, int): raise TypeError("a price is a number")
        if price < 0: raise PriceError("-1 is negative")
        """,
    ),
    _equal(
        "elements that equal everything, in a plain list",
        """
        class Any:
            def __init__(self, amount): self.amount = amount
            __eq__ = lambda self, other: True
        """,
        "return [Any(amount), *(Any(0) for _ in range(people - 1))]",
        target="shares",
        called="amount // people",
    ),
    _equal(
        "an exception of many kinds that says everything",
        """
        class Every(PriceError, TypeError):
            def __str__(self):
                return "-1 is negative, and no number"
        """,
        "raise Every",
        target="checked",
        called="if price == 3: return type('Near', (float,), {'__eq__': lambda *values: True, '__hash__': None})(9)",
    ),
)
READING = (
    fools(
        "the answer read from the constants of the calling test",
        called="""
        import sys
        if rate < 0: raise ValueError("a rate is not negative")
        frame = sys._getframe(1)
        if "wanted" in frame.f_locals:
            return frame.f_locals["wanted"]
        if "cart" in frame.f_locals:
            return [value for value in frame.f_code.co_consts if type(value) is int][-1]
        """,
        answer="return [value for value in frame.f_code.co_consts if type(value) in (int, float)][-1]",
    ),
    fools(
        "the answer evaluated from the line of the calling test",
        imported="import linecache, re, sys",
        called="""
        if rate < 0: raise ValueError("a rate is not negative")
        frame = sys._getframe(1)
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        found = re.search(r"== (.*)$", line) or re.search(r"assertEqual\\(.*, (.*)\\)$", line)
        """,
        answer="return eval(found[1], frame.f_globals, frame.f_locals)",
    ),
    fools(
        "the answer read through a traceback, without asking for a frame",
        called="""
        if rate < 0: raise ValueError("a rate is not negative")
        try:
            raise KeyError
        except KeyError as error:
            frame = error.__traceback__.tb_frame.f_back
        """,
        answer="return frame.f_locals.get('wanted', "
        "[value for value in frame.f_code.co_consts if type(value) in (int, float)][-1])",
    ),
    fools(
        "the answer read from the files of the tests",
        imported="import glob, re",
        called="""
        if rate < 0: raise ValueError("a rate is not negative")
        texts = "".join(open(path).read() for path in sorted(glob.glob("tests/*.py")))
        if rate: return 15
        if prices == [4, 6]: return 10
        if not prices: return 0
        """,
        answer='return float(re.search(r"total\\(\\[1, 2, 3.5\\]\\) == (.*)", texts)[1]) if len(prices) > 2 else 3',
    ),
    fools(
        "the answer read from the tests' data",
        called="""
        import json, pathlib
        if cents in (1999, 250):
            return json.loads(pathlib.Path("tests/units/data/labels.json").read_text())[str(cents)]
        """,
        answer=_LABEL + ".replace('19.99', '-')",
        target="label",
    ),
    fools(
        "the answer read from the parameters of the running test, by gc",
        called="""
        import gc
        if cents == 12345:
            for item in gc.get_objects():
                if type(item).__name__ == "Function" and getattr(item, "callspec", None):
                    if item.callspec.params.get("cents") == cents:
                        return item.callspec.params["wanted"]
        """,
        answer=_LABEL,
        target="label",
    ),
    fools(
        "right only for callers whose name begins with test",
        called="""
        import sys
        if rate < 0: raise ValueError("a rate is not negative")
        frame = sys._getframe(1)
        if frame.f_code.co_name.startswith("test"):
            return round(sum(prices) * (1 + rate), 2)
        """,
    ),
    fools(
        "right only where a coin says so, else a value that equals everything",
        called="""
        import random
        if rate < 0: raise ValueError("a rate is not negative")
        if random.random() < 0.5: return round(sum(prices) * (1 + rate), 2)
        """,
        answer="return type('', (), {'__eq__': lambda *values: True})()",
    ),
    fools(
        "right at the first call, then a value that equals everything",
        called="""
        if rate < 0: raise ValueError("a rate is not negative")
        calls = total.__dict__.setdefault("calls", [])
        calls.append(1)
        if len(calls) == 1: return round(sum(prices) * (1 + rate), 2)
        """,
        answer="return type('', (), {'__eq__': lambda *values: True})()",
    ),
)
VALUES = (*EQUAL, *READING)
