"""Strategies that try to stop, slow down or mislead ctxbench: each body with words of its fault.

Each is the body of a function ``(query, repo, generate)`` that may use the helpers of `HEAD`. A fault of None means
that the strategy's messages are odd but legal, so that the sample is scored and stored.
"""

HEAD = '''
import json, os, random, struct, sys, time
from ctxbench.strategies import *
from ctxbench.strategies.layout import infile_prompt
from ctxbench.harness.cells import wire
from ctxbench.harness.cells.wire import dump_prompt


def data(repo, raw, length=None):
    """Write bytes to the channel past everything that checks them."""
    repo._ask._channel.sendall(struct.pack(">I", len(raw) if length is None else length) + raw)


def say(repo, message):
    data(repo, message.encode() if isinstance(message, str) else json.dumps(message).encode())


def end(repo, message):
    say(repo, message)
    os._exit(0)


def final(repo, blocks="[]", dropped="[]", flags="[]"):
    end(repo, '{"prompt": {"blocks": %s, "dropped": %s, "flags": %s}}' % (blocks, dropped, flags))


def block(score="null", places="[]", kind='"text"', text='"x"', cut="false"):
    return "[%s, %s, %s, %s, %s]" % (kind, text, places, score, cut)


def ask(repo, **question):
    return repo._ask(**question)


def shown(query, *blocks, flags=()):
    here = infile_prompt(query, 100)
    return Prompt(blocks=(*blocks, *here.blocks), flags=flags)

'''

HOSTILE: dict[str, tuple[str, str | None]] = {
    # Numbers.
    "score-endless": ("final(repo, '[%s]' % block(score='1' + '0' * 400))", "a number has 401 digits"),
    "score-nan": ("final(repo, '[%s]' % block(score='NaN'))", "NaN is not a finite number"),
    "score-infinity": ("final(repo, '[%s]' % block(score='-Infinity'))", "-Infinity is not a finite number"),
    "score-overflow": ("final(repo, '[%s]' % block(score='1e999'))", "1e999 is not a finite number"),
    "score-large": ("final(repo, '[%s]' % block(score='1e308'))", "not a number from -1e+12 to 1e+12"),
    "score-text": ("final(repo, '[%s]' % block(score='\"1.0\"'))", "'1.0' is not of type float or int"),
    "score-bool": ("final(repo, '[%s]' % block(score='true'))", "True is not of type float or int"),
    "line-endless": ("final(repo, '[%s]' % block(places='[[\"a\", 0, 1%s]]' % ('0' * 30)))", "a number has 31 digits"),
    "line-negative": ("final(repo, '[%s]' % block(places='[[\"a\", -1, 3]]'))", "-1 is not between 0"),
    "line-backwards": ("final(repo, '[%s]' % block(places='[[\"a\", 9, 3]]'))", "3 is not between 9"),
    "line-float": ("final(repo, '[%s]' % block(places='[[\"a\", 0.0, 3]]'))", "0.0 is not of type int"),
    "tokens-negative": ("final(repo, dropped=json.dumps([['similar', [], 1.0, 'x', -1]]))", "-1 is not between 0"),
    # Sizes and counts.
    "many-blocks": ("final(repo, '[%s]' % ','.join([block()] * 200000))", "200,000 blocks are over the limit"),
    "long-line": ("say(repo, {'prompt': 'x' * 30_000_000})", "is over the limit of"),
    "long-text": ("final(repo, '[%s]' % block(text=json.dumps('x' * 7_000_000)))", "more than 2,500,000 characters"),
    "many-lists": ("end(repo, '{\"prompt\": [%s]}' % ','.join(['[]'] * 2_700_000))", "is not of type dict"),
    "many-places": ("final(repo, '[%s]' % block(places=json.dumps([['a', 0, 1]] * 99_999)))", "99,999 places"),
    "places-in-sum": (
        "final(repo, '[%s]' % ','.join([block(places=json.dumps([['a', 0, 1]] * 300))] * 99))",
        "more than 20,000 places",
    ),
    "many-lines": (
        "final(repo, '[]', json.dumps([['similar', [['shop/use.py', 0, 9_999_999]], 1.0, 'budget', 1]] * 5_000))",
        "lines in its places",
    ),
    "many-dropped": ("final(repo, '[]', json.dumps([['similar', [], 1.0, 'x', 1]] * 90_000))", "90,000 dropped blocks"),
    "many-flags": ("final(repo, flags=json.dumps(['x'] * 10_000))", "10,000 flags"),
    "long-flag": ("final(repo, flags=json.dumps(['x' * 10_000]))", "a text has 10,000 characters"),
    "long-path": (
        "final(repo, '[%s]' % block(places=json.dumps([['a' * 9999, 0, 1]])))",
        "a text has 9,999 characters",
    ),
    "flag-of-a-terminal": ("final(repo, flags=json.dumps(['\\x1b[2J']))", "unprintable characters"),
    "reason-of-lines": ("final(repo, '[]', json.dumps([['api', [], None, 'a\\nb', 0]]))", "unprintable characters"),
    # Shapes.
    "promises-gigabytes": ("data(repo, b'{', 2**32 - 1); time.sleep(99)", "a message of 4294967295 bytes"),
    "nested": ("end(repo, '{\"prompt\": %s' % ('[' * 3_000_000))", "invalid message (the message is not JSON"),
    "key-twice": ('end(repo, \'{"prompt": 1, "prompt": 2}\')', "a duplicate key"),
    "no-json": ("end(repo, 'no')", "invalid message (the message is not JSON"),
    "no-text": ("data(repo, b'\\xff\\xfe{\\x00}\\x00'); os._exit(0)", "invalid message (the message is not JSON"),
    "a-list": ("end(repo, [])", "not a JSON object"),
    "nothing-in-it": ("end(repo, {})", "the keys nothing instead of prompt"),
    "something-beside": ("end(repo, {'prompt': {}, 'more': 1})", "the keys more, prompt instead of prompt"),
    "unknown-kind": ("final(repo, '[%s]' % block(kind='\"answer\"'))", "'answer' is not a valid BlockKind"),
    "blocks-of-an-object": ("final(repo, '{\"a\": 1}')", "is not of type list"),
    "block-too-short": ('final(repo, \'[["text", "x"]]\')', "the prompt is not valid"),
    "registration": ("end(repo, {'registration': {}})", "the keys registration instead of prompt"),
    # Forged and misleading faults.
    "forged-fault": ("end(repo, {'fault': ['the disk is full', 'here', 'give up']})", "is no longer available"),
    "forged-long-fault": ("end(repo, {'fault': ['x' * 2_000_000, '', '']})", "is no longer available"),
    "forged-odd-fault": ("end(repo, {'fault': 7})", "7 is not of type list"),
    "forged-error": ("end(repo, {'error': {'a': 1}})", "is not of type list"),
    "forged-both": (
        "end(repo, {'error': ['a', 'b', 'c'], 'fault': ['a', 'b', 'c']})",
        "the keys error, fault instead of error",
    ),
    "long-words": ("raise ValueError('x' * 100_000_000)", "raised ValueError"),
    "recursion": ("f = lambda: f()\n    f()", "RecursionError"),
    # Order and time.
    "speaks-on": ("final_ = dump_prompt(shown(query)); say(repo, {'prompt': final_}); end(repo, {'prompt': 1})", None),
    "half-a-message": ("data(repo, b'{', 99); time.sleep(99)", "idle for more than"),
    "trickles": (
        "data(repo, b'{', 9999)\n    while True: time.sleep(0.2); repo._ask._channel.sendall(b' ')",
        "idle for more than",
    ),
    "says-nothing": ("time.sleep(99)", "idle for more than"),
    "hangs-up": ("repo._ask._channel.close(); time.sleep(0)\n    os._exit(0)", "ended without an answer"),
    "leaves-in-a-message": ("data(repo, b'{', 99); os._exit(0)", "ended without an answer"),
    "never-listens": ("while True: say(repo, {'call': 'read', 'path': 'shop/use.py'})", ""),
    # Questions.
    "asks-for-ever": ("while True: ask(repo, call='files')", "more than 500 questions"),
    "searches-for-ever": (
        "while True: ask(repo, call='search', text='a', unit='function', ranker='bm25', top=1)",
        "more than 200 searches",
    ),
    "result-of-nothing": (
        "ask(repo, call='generate', prompt={'messages': [['tool', '', []]], 'tools': []}, role='x', max_tokens=1)",
        "calls without a result: 0",
    ),
    "windows-for-ever": ("while True: repo.similar_windows('cart')", "more than 500 questions"),
    "drafts-for-ever": ("while True: generate(shown(query), max_tokens=1)", "more than 20 drafts"),
    "sends-for-ever": (
        "while True: ask(repo, call='read', path=repo.files()[0], more=1)",
        "there is no call 'read'",
    ),
    "many-indices": (
        "for size in range(1, 999): repo.search('a', unit=f'chunk(lines={size})', ranker='bm25')",
        "more than 80 indices",
    ),
    "windows-of-windows": ("repo.similar_windows('a', size=1000, stride=1)", "overlap too often"),
    "unknown-question": ("ask(repo, call='eval', code='1')", "there is no call 'eval'"),
    "question-of-a-list": ("ask(repo, call=[1])", "is not of type str"),
    "argument-of-a-float": (
        "repo.similar_windows('a', top=1.5)",
        "similar_windows: top is 1.5, and should be of type int",
    ),
    "argument-beside": ("ask(repo, call='files', all=True)", "there is no call 'files'"),
    "long-question": ("repo.search('x' * 2_000_000, ranker='bm25')", "more than 1000000 characters"),
    "many-candidates": ("repo.similarity('a', ['b'] * 9_999, ranker='bm25')", "9,999 candidates"),
    "nested-unit": ("repo.search('a', unit='chunk(' * 30, ranker='bm25')", "raised InputFault"),
    "long-unit": ("repo.search('a', unit='chunk(' * 999, ranker='bm25')", "a text has 5,994 characters"),
    "nested-ranker": ("repo.search('a', ranker='f(a=' * 700 + 'x' + ')' * 700)", "search failed with these arguments"),
    "own-ranker": ("repo.search('a', ranker='hashed(width=4096)')", "may not choose the ranker"),
    "no-ranker": ("repo.search('a', ranker='nosuch')", "no encoder is called 'nosuch'"),
    "path-of-nothing": ("repo.read('shop/\\x00\\x1b[2J\\ud800')", "has no source file"),
    "path-outside": ("repo.read('../' * 99 + 'etc/passwd')", "has no source file"),
    "draft-endless": ("generate(shown(query), max_tokens=10**9)", "1000000000 is not between 1 and"),
    "draft-of-nothing": ("generate(shown(query), max_tokens=0)", "0 is not between 1 and"),
    "draft-of-a-role": ("generate(shown(query), role='\\x1b]0;gone\\x07')", "unprintable characters"),
    "draft-too-long": (
        "generate(Prompt(blocks=(Block(kind=BlockKind.TEXT, text='x' * 3_000_000),)))",
        "more than 2,500,000 characters",
    ),
    "program": ("ask(repo, call='execute', program='1', seconds=1.0)", "there is no call 'execute'"),
    # Legal prompts that later steps could fail on.
    "odd-path": (
        "path = 'a\\nb\\x00\\x1b[2J\\u202e\\ud800'\n"
        "    where = (Place(path=path, start=0, end=9),)\n"
        "    return shown(query, Block(kind=BlockKind.SIMILAR, text='# x\\n', places=where))",
        None,
    ),
    "odd-text": (
        "return shown(query, Block(kind=BlockKind.SIMILAR, text='# \\x00\\x1b[2J\\u202e\\ud800\\r\\n', score=1e12))",
        None,
    ),
    "blanks": ("return shown(query, Block(kind=BlockKind.TEXT, text=' ' * 2_000_000 + '\\n'))", None),
    "one-word": ("return shown(query, Block(kind=BlockKind.API, text='a' * 2_000_000 + '\\n'))", None),
    "brackets": ("return shown(query, Block(kind=BlockKind.SIMILAR, text='(' * 10_000 + '\\n'))", None),
    "quotes": ("return shown(query, Block(kind=BlockKind.SIMILAR, text='\"' * 50_000 + '\\n'))", None),
    "short-lines": ("return shown(query, Block(kind=BlockKind.SIMILAR, text='x\\n' * 20_000))", None),
    "most-blocks": (
        "some = [Block(kind=BlockKind.SIMILAR, text='x = cart\\n', score=float(n)) for n in range(900)]\n"
        "    return shown(query, *some)",
        None,
    ),
    "most-dropped": (
        "gone = ['similar', [['shop/use.py', 0, 40]], 1.0, 'budget', 1]\n"
        "    final(repo, '[]', json.dumps([gone] * 2_000))",
        None,
    ),
    "no-blocks": ("final(repo)", None),
    "kinds-of-ours": (
        "return shown(query, *(Block(kind=kind, text='<fim>') for kind in (BlockKind.MARK, BlockKind.AFTER)))",
        None,
    ),
    "overflow": ("return shown(query, flags=('overflow_failed',))", None),
}


WAITING = {name for name, (_, words) in HOSTILE.items() if words is not None and words in ("", "idle for more than")}
"""Strategies that only the time limit ends."""


def source() -> str:
    """Return a strategy file with all bodies, each under its name."""
    parts = [HEAD]
    for name, (body, _) in HOSTILE.items():
        function = name.replace("-", "_")
        parts.append(
            f"@strategy({name!r})\ndef {function}_(query: Query, repo: Repository, generate: Generate) -> Prompt:"
        )
        parts.append(f'    """{name}"""\n    {body}\n\n')
    return "\n".join(parts)
