"""Honest completions: wrong ones, which must fail, and correct but unusual ones, which must pass."""

# ruff: noqa: E501 - completions are programs as data

import textwrap
from dataclasses import dataclass

from tests.sandbox.forgeries.shop import TARGETS


@dataclass(frozen=True)
class Honest:
    name: str
    target: str
    text: str


def _programs(bodies: dict[str, dict[str, str | tuple[str, str]]]) -> tuple[Honest, ...]:
    """Return programs from target -> name -> the function's body, or the body and the code after the function."""
    programs = []
    for target, named in bodies.items():
        declaration = TARGETS[target].split("\n", 1)[0]
        for name, given in named.items():
            body, after = (given, "") if isinstance(given, str) else given
            inner = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
            text = f"{declaration}\n{inner}\n\n\n{textwrap.dedent(after)}".rstrip() + "\n"
            programs.append(Honest(name, target, text))
    return tuple(programs)


_RATE = 'if rate < 0: raise ValueError("a rate is not negative")\n'
WRONG = _programs(
    {
        "total": {
            "leaves the rate out": _RATE + "return round(sum(prices), 2)",
            "takes a negative rate": "return round(sum(prices) * (1 + rate), 2)",
            "raises another exception": "if rate < 0: raise KeyError(rate)\nreturn round(sum(prices) * (1 + rate), 2)",
            "rounds too much": _RATE + "return round(sum(prices) * (1 + rate))",
            "gives a text": _RATE + "return str(round(sum(prices) * (1 + rate), 2))",
            "forgets to return": _RATE + "round(sum(prices) * (1 + rate), 2)",
            "fails on nothing": _RATE + "return round(sum(prices) / len(prices) * len(prices) * (1 + rate), 2)",
            "names what is not there": _RATE + "return round(add(prices) * (1 + rate), 2)",
            "is no Python": "return round(sum(prices) * (1 + rate, 2)",
            "asks for a module that is not there": "import money_of_old\nreturn money_of_old.total(prices, rate)",
            "calls itself without end": _RATE + "return total(prices, rate)",
            "is not written yet": "raise NotImplementedError",
        },
        "running": {
            "gives a list with one too many": "come_to = 0\nyield come_to\nfor price in prices:\n    come_to += price\n    yield come_to",
            "adds all before the first": "yield from [sum(prices[: n + 1]) for n in range(len(prices))]",
            "returns no generator": "return None",
        },
        "label": {
            "leaves the currency out": 'return f"{cents / 100:.2f} EUR"',
            "has one digit": 'return f"{cents / 100:.1f} {currency}"',
        },
        "checked": {
            "lets a negative price through": 'if not isinstance(price, int): raise TypeError("a price is a number")\nreturn price',
        },
        "save": {
            "warns of nothing": 'path.write_text(" ".join(map(str, prices)))\nprint(len(prices), "prices")\nreturn money.stamp(path)',
            "prints nothing": 'if not prices: warnings.warn("no price", UserWarning, stacklevel=2)\npath.write_text(" ".join(map(str, prices)))\nreturn money.stamp(path)',
        },
        "fetch": {
            "gives none where there is nothing": "return shelf.get(name)",
            "is waited for without being awaited": "return asyncio.sleep(0, shelf[name])",
        },
        "shares": {
            "keeps what is left over": "return [money.Share(number, amount // people) for number in range(people)]",
        },
        "Cart.pays": {
            "gives no cents": "return sum(self.prices) * (1 + rate)",
            "empties the cart": "come_to = sum(self.prices)\nself.prices.clear()\nreturn come_to",
        },
    }
)
RIGHT = _programs(
    {
        "total": {
            "with a class of its own that compares": (
                _RATE + "best = max([_Amount(0), _Amount(sum(prices))])\nreturn round(best.value * (1 + rate), 2)",
                """
                class _Amount:
                    def __init__(self, value): self.value = value
                    def __eq__(self, other): return self.value == other.value if isinstance(other, _Amount) else NotImplemented
                    def __lt__(self, other): return self.value < other.value
                    __hash__ = None
                """,
            ),
            "with a cache": (
                _RATE + "return _cached(tuple(prices), rate)",
                """
                import functools

                @functools.lru_cache(maxsize=None)
                def _cached(prices, rate):
                    return round(sum(prices) * (1 + rate), 2)
                """,
            ),
            "with an executor": """
                from concurrent.futures import ThreadPoolExecutor
                if rate < 0:
                    raise ValueError("a rate is not negative")
                with ThreadPoolExecutor(2) as pool:
                    parts = list(pool.map(sum, (prices[::2], prices[1::2])))
                return round(sum(parts) * (1 + rate), 2)
                """,
            "with a thread": """
                import threading
                if rate < 0:
                    raise ValueError("a rate is not negative")
                found = []
                thread = threading.Thread(target=lambda: found.append(sum(prices)))
                thread.start()
                thread.join()
                return round(found[0] * (1 + rate), 2)
                """,
            "by recursion": _RATE
            + "if not prices: return 0\nreturn round(prices[0] * (1 + rate) + total(prices[1:], rate), 2)",
            "with an assignment in an expression": _RATE + "return round((come_to := sum(prices)) + come_to * rate, 2)",
            "with decimals": _RATE
            + "from decimal import Decimal\nreturn float(round(sum(map(Decimal, map(str, prices)), Decimal(0)) * Decimal(str(1 + rate)), 2))",
            "with an operator and reduce": _RATE
            + "import functools, operator\nreturn round(functools.reduce(operator.add, prices, 0) * (1 + rate), 2)",
            "with a nested generator": _RATE
            + """
def each():
    for price in prices:
        yield price * (1 + rate)
return round(sum(each()), 2)
""",
            "in another Python": _RATE
            + "import json, subprocess, sys\nsaid = subprocess.run([sys.executable, '-c', f'print(sum({prices!r}))'], capture_output=True, text=True)\n"
            "return round(json.loads(said.stdout) * (1 + rate), 2)",
            "with a memoryview": _RATE
            + "import array\nreturn round(sum(memoryview(array.array('d', prices))) * (1 + rate), 2)",
            "with a log": _RATE
            + "import logging\nlogging.getLogger(__name__).debug('prices %s', prices)\nreturn round(sum(prices) * (1 + rate), 2)",
            "with types checked": _RATE
            + "assert all(isinstance(price, (int, float)) for price in prices)\nreturn round(sum(prices) * (1 + rate), 2)",
            "with an exception of its own inside": _RATE
            + "try:\n    return round(sum(prices) * (1 + rate), 2)\nexcept TypeError as error:\n    raise ValueError('prices are numbers') from error",
            "with a copy that is emptied": _RATE
            + "left, come_to = list(prices), 0\nwhile left: come_to += left.pop()\nreturn round(come_to * (1 + rate), 2)",
            "with a match statement": "match rate:\n    case _ if rate < 0:\n        raise ValueError('a rate is not negative')\n    case _:\n        return round(sum(prices) * (1 + rate), 2)",
            "with a random order": _RATE
            + "import random\nreturn round(sum(random.sample(prices, len(prices))) * (1 + rate), 2)",
        },
        "running": {
            "by the library": "from itertools import accumulate\nreturn accumulate(prices)",
            "by an iterator of its own": (
                "return _Running(prices)",
                """
                class _Running:
                    def __init__(self, prices): self.prices, self.come_to = iter(prices), 0
                    def __iter__(self): return self
                    def __next__(self):
                        self.come_to += next(self.prices)
                        return self.come_to
                """,
            ),
        },
        "label": {
            "with the old way of formatting": "return '%.2f %s' % (cents / 100, currency)",
            "with a type of text that it defines": (
                "return str(_Text(f'{cents / 100:.2f} {currency}'))",
                "class _Text(str):\n    __slots__ = ()\n",
            ),
        },
        "checked": {
            "with the name of its caller in a message": """
                import inspect
                if not isinstance(price, int | float):
                    raise TypeError(f"a price is a number: {inspect.stack()[1].function}")
                if price < 0:
                    raise PriceError(f"{price} is negative")
                return price
                """,
        },
        "save": {
            "with the frame of its caller in a warning": """
                import sys
                if not prices:
                    caller = sys._getframe(1)
                    warnings.warn_explicit("no price", UserWarning, caller.f_code.co_filename, caller.f_lineno)
                path.write_text(" ".join(str(price) for price in prices))
                print(len(prices), "prices")
                return money.stamp(path)
                """,
            "with a module that is for tests": "from unittest import mock\nif not prices: warnings.warn('no price', UserWarning, stacklevel=2)\nwith mock.patch.dict('os.environ', {'PRICES': str(prices)}):\n    path.write_text(' '.join(map(str, prices)))\nprint(len(prices), 'prices')\nreturn money.stamp(path)",
        },
        "fetch": {
            "with tasks": "found = await asyncio.gather(asyncio.sleep(0, shelf[name]))\nreturn found[0]",
        },
        "shares": {
            "with objects changed after they were made": "rest = amount % people\nfound = [money.Share(number, amount // people) for number in range(people)]\nfound[0].amount += rest\nreturn found",
        },
        "Cart.pays": {
            "with a function inside": "def with_rate(price):\n    nonlocal rate\n    return price * (1 + rate)\nreturn money.cents(sum(map(with_rate, self.prices)))",
        },
    }
)
