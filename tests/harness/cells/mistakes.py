"""Strategies with mistakes or bad intent, and the results of `strategy check` and `run` for each.

As a program, this module tries all of them as the current user and prints the results as JSON.
"""

import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path

from ctxbench.bench.home import Home
from ctxbench.harness.cells import StrategyBounds, open_cells
from ctxbench.harness.cells.pool import ForkedCells
from ctxbench.harness.run.runner import run
from ctxbench.harness.run.spec import RunOptions
from ctxbench.harness.store import open_store
from tests.helpers.sets import make_set

SECONDS = 0.5
"""Processor time that a strategy may use here, in seconds. It may wait five times as long."""
NEIGHBOUR = "ran out of memory"
"""The fault if the kernel kills processes of another test's box at the same time. The strategy is then tried again."""
TIMES = 4
"""The maximum number of attempts."""

HEAD = """\
import decimal, os, pathlib, random, socket, sys, time, urllib.request
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_block, infile_prompt

HOME = pathlib.Path({home!r})


def block(kind=BlockKind.SIMILAR, text="# x\\n", places=(), score=None):
    return Block(kind=kind, text=text, places=places, score=score)


def shown(query, *blocks, flags=()):
    return Prompt(blocks=(*blocks, infile_block(query, 100)), flags=flags)


def lines(repo, start, end, path="shop/tax.py"):
    path = path if path in repo.files() else repo.files()[-1]
    text = "".join(f"# {{line}}\\n" for line in repo.read(path).splitlines()[start:end])
    return path, text
"""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """The body of a strategy ``(query, repo, generate)``, and its expected fault or finding."""

    body: str
    fault: str = ""
    """Words of the fault if the strategy fails in a run. The check then reports the same fault."""
    finding: str = ""
    """The name of the check that fails although a run accepts the strategy."""


MISTAKES: dict[str, Mistake] = {
    # Access to files and networks outside the cell.
    "opens-the-references": Mistake(
        body="(HOME / 'samples' / 'demo' / 'references.jsonl').read_text()", fault="references.jsonl' (mistakes.py:"
    ),
    "opens-the-database": Mistake(body="(HOME / 'results.db').read_bytes()", fault="results.db' (mistakes.py:"),
    "lists-the-home": Mistake(
        body="return shown(query, block(text=str(os.listdir(HOME / 'samples'))))", fault="samples' (mistakes.py:"
    ),
    "writes-outside": Mistake(
        body="pathlib.Path('/var/tmp/zq').write_text('x')",
        fault="write to its temporary folder, and has no network (docs/isolation.md)",
    ),
    "writes-beside-itself": Mistake(
        body="pathlib.Path(__file__).with_name('zq').write_text('x')", fault="zq' (mistakes.py:"
    ),
    "connects": Mistake(body="socket.create_connection(('127.0.0.1', 9))", fault="Error: "),
    "downloads": Mistake(body="urllib.request.urlopen('http://127.0.0.1:9/')", fault="raised URLError: "),
    "connects-in-silence": Mistake(
        body="try: socket.create_connection(('127.0.0.1', 9))\n    except OSError: pass\n    return shown(query)",
        finding="uses no network",
    ),
    # Time and memory.
    "loops": Mistake(body="while True: pass", fault="more than 0.5 seconds of processor time"),
    "loops-in-children": Mistake(
        body="if not os.fork():\n        while True: pass\n    os.wait()",
        fault="more than 0.5 seconds of processor time",
    ),
    "sleeps": Mistake(body="time.sleep(999)", fault="idle for more than 2.5 seconds"),
    "waits-for-nobody": Mistake(body="os.read(os.pipe()[0], 1)", fault="idle for more than 2.5 seconds"),
    "holds-too-much": Mistake(body="bytearray(99 << 30)", fault="MemoryError: a strategy may use 4 GiB (mistakes.py:"),
    "grows": Mistake(
        body="held = []\n    while True: held.append(bytes(1 << 30))",
        fault="MemoryError: a strategy may use 4 GiB (mistakes.py:",
    ),
    # Early ends.
    "leaves": Mistake(body="os._exit(0)", fault="ended without an answer"),
    "exits": Mistake(body="sys.exit('enough')", fault="raised SystemExit: enough"),
    "raises": Mistake(body="{}['cart']", fault="raised KeyError: 'cart' (mistakes.py:"),
    "recursion": Mistake(body="f = lambda: f()\n    f()", fault="raised RecursionError: "),
    "imports-what-is-not-there": Mistake(body="import zqnothing", fault="No module named 'zqnothing' (mistakes.py:"),
    # Results.
    "returns-nothing": Mistake(body="pass", fault="returned NoneType; return a Context or a Prompt"),
    "returns-a-text": Mistake(body="return query.prefix", fault="returned str; return a Context or a Prompt"),
    "score-nan": Mistake(
        body="return Context.ranked([Snippet(path='a.py', text='x', score=float('nan'))])",
        fault="returned snippet 0 ('a.py') with the score nan; make it a finite number",
    ),
    "score-infinite": Mistake(
        body="return shown(query, block(score=float('inf')))", fault="block 0 (similar) with the score inf"
    ),
    "score-decimal": Mistake(
        body="return shown(query, block(score=decimal.Decimal(1)))", fault="with the score Decimal('1')"
    ),
    "score-large": Mistake(body="return shown(query, block(score=1e13))", fault="is not a number from -1e+12 to 1e+12"),
    "line-negative": Mistake(
        body="return shown(query, block(places=(Place(path='a', start=-1, end=3),)))",
        fault="block 0 (similar, a lines -1 to 3) with the start -1; make it an int of at least 0",
    ),
    "line-backwards": Mistake(
        body="return shown(query, block(places=(Place(path='a', start=9, end=3),)))", fault="ends before it starts"
    ),
    "line-float": Mistake(
        body="return shown(query, block(places=(Place(path='a', start=1.0, end=3),)))", fault="with the start 1.0"
    ),
    "blocks-in-a-list": Mistake(body="return Prompt(blocks=[infile_block(query, 9)])", fault="make them a tuple"),
    "dropped-in-words": Mistake(
        body="gone = Dropped(kind=BlockKind.API, places=(), score=1, reason='x', tokens='9')\n"
        "    return Prompt(blocks=(), dropped=(gone,))",
        fault="dropped block 0 with the tokens '9'; make it an int of at least 0",
    ),
    "block-of-text": Mistake(body="return Prompt(blocks=('x',))", fault="with the block 'x'; make it a Block"),
    "flag-of-lines": Mistake(body="return shown(query, flags=('a\\nb',))", fault="unprintable characters"),
    "many-blocks": Mistake(body="return shown(query, *[block()] * 2000)", fault="blocks are over the limit of 1,000"),
    "long-prompt": Mistake(
        body="return shown(query, block(text='x' * 3_000_000))", fault="more than 2,500,000 characters"
    ),
    # Questions.
    "prompt-of-a-number": Mistake(
        body="generate(7)", fault="generate: prompt is 7, and should be a Prompt, a str or a Chat"
    ),
    "tokens-in-words": Mistake(body="generate('x', max_tokens='9')", fault="generate: max_tokens is '9'"),
    "tokens-without-end": Mistake(
        body="generate('x', max_tokens=10**9)", fault="max_tokens: 1000000000 is not between 1"
    ),
    "asks-for-ever": Mistake(body="while True: generate('x', max_tokens=1)", fault="more than 200 drafts"),
    "reads-what-is-not-there": Mistake(body="repo.read('zq.py')", fault="take a path from repo.files()"),
    "searches-for-nothing": Mistake(
        body="repo.search(None, ranker='bm25')", fault="search: text is None, and should be of type str (mistakes.py:"
    ),
    "unit-that-is-none": Mistake(body="repo.search('x', unit='page', ranker='bm25')", fault="no unit is called 'page'"),
    # Accepted by a run.
    "counts-from-one": Mistake(
        body="path, text = lines(repo, 0, 2)\n"
        "    return shown(query, block(text=text, places=(Place(path=path, start=1, end=2),)))",
        finding="places match the blocks",
    ),
    "one-line-down": Mistake(
        body="path, text = lines(repo, 0, 2)\n"
        "    return shown(query, block(text=text, places=(Place(path=path, start=1, end=3),)))",
        finding="places match the blocks",
    ),
    "random": Mistake(body="return shown(query, block(text=f'# {random.random()}\\n'))", finding="is deterministic"),
    "path-of-the-machine": Mistake(
        body="return shown(query, block(text=os.getcwd() + '/x.py\\n'))", finding="shows no path of this machine"
    ),
    "no-file": Mistake(body="return Prompt(blocks=(block(),))", finding="ends with the file"),
    "needs-a-file": Mistake(body="query.prefix[0]\n    return shown(query)", finding="runs on an empty file"),
    # No mistake.
    "honest": Mistake(body="return shown(query, block(text=generate('x = ', role='draft')))"),
}


def source(home: Path) -> str:
    """Return a strategy file with all bodies, each under its name."""
    parts = [HEAD.format(home=str(home))]
    for name, mistake in MISTAKES.items():
        function = name.replace("-", "_")
        parts.append(
            f"@strategy({name!r})\ndef {function}_(query: Query, repo: Repository, generate: Generate) -> Prompt:"
        )
        parts.append(f'    """{name}"""\n    {mistake.body}\n\n')
    return "\n".join(parts)


def checked(cells: ForkedCells, spec: str) -> list[tuple[str, bool, str]]:
    """Return name, outcome and detail of each finding of a check."""
    for _ in range(TIMES):
        found = [(finding.name, finding.passed, finding.detail) for finding in cells.checked(spec)]
        if NEIGHBOUR not in str(found):
            break
    return found


def main(root: Path) -> None:
    """Check and run each strategy in a new world."""
    logging.disable(logging.INFO)
    home = Home(root / "home")
    samples = make_set(home, repos=1, per_repo=1)
    (root / "strategies").mkdir()
    file = root / "strategies" / "mistakes.py"
    file.write_text(source(home.root))
    specs = {f"{file}@{name}": name for name in MISTAKES}
    faults: dict[str, list[str]] = {}
    with open_store(home.database) as store:
        choices = RunOptions(strategy_seconds=SECONDS, workers=2)
        left = list(specs)
        for _ in range(TIMES):
            summaries = run(home, store, samples, strategies=left, generator="incontext", choices=choices)
            faults |= {specs[one.strategy]: [fault.message for fault in one.faults] for one in summaries}
            left = [spec for spec in left if NEIGHBOUR in str(faults[specs[spec]])]
            if not left:
                break
    with open_cells([home.root], 1, limits=StrategyBounds.of_work(SECONDS)) as cells:
        isolation = cells.describe()["isolation"]
        found = {name: checked(cells, spec) for spec, name in specs.items()}
    sys.stdout.write(json.dumps({"isolation": isolation, "run": faults, "check": found}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
