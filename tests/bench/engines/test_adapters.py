"""What the shipped engines find in a box if names repeat, are parts of others, or occur far down in a file."""

from dataclasses import replace
from pathlib import Path

import pytest

from ctxbench.bench.engines import conformance
from ctxbench.bench.engines.box import EngineBox
from ctxbench.bench.engines.recipe import read
from ctxbench.bench.engines.types import Raised
from ctxbench.bench.types import Cursor
from ctxbench.sandbox.persistent import with_resident
from ctxbench.sandbox.types import Sandbox
from tests.helpers.samples import make_sample

pytestmark = [pytest.mark.network, pytest.mark.slow]

SERVER = """\
import json
from pathlib import Path

from mcp.server.fastmcp import FastMCP

app = FastMCP("picky")


@app.tool()
def find(name: str) -> str:
    rows = Path("lib.py").read_text().split("\\n")
    hits = [{"path": "lib.py", "line": number} for number, row in enumerate(rows, 1) if name in row]
    if not hits:
        raise ValueError("No matches found")
    return json.dumps(hits)


app.run()
"""
"""A server that reports an error if it finds nothing."""


def places(sandbox: Sandbox, engine: str, tree: dict[str, str], text: str) -> list[tuple[str, int, int]]:
    """Return the places that an engine finds for the text of the file `target.py`."""
    recipe = read(engine)
    sandbox.prepare(with_resident(recipe.environment), lambda _: None)
    sample = make_sample(path="target.py", cursor=Cursor(line=text.count("\n"), column=0), prefix=text)
    box = EngineBox(recipe, {"target.py": "", **tree}, sandbox)
    try:
        return [(path, start, end) for path, start, end, _ in box.search(text, sample, 10)]
    finally:
        box.end()


def test_ripgrep_finds_the_end_of_a_file_full_of_one_term(bubblewrap_sandbox: Sandbox) -> None:
    tree = {"lib.py": "".join(f"foo = {number}\n" for number in range(250)) + "rare_name = foo\n"}
    assert places(bubblewrap_sandbox, "ripgrep", tree, "foo(rare_name")[0] == ("lib.py", 240, 260)


def test_tantivy_weights_a_word_by_the_nearest_name_that_contains_it(bubblewrap_sandbox: Sandbox) -> None:
    tree = {"near.py": "cart = 1\n", "far.py": "other_word = 1\n"}
    text = "def old(get_cart, other_word):\n" + "    pass\n" * 15 + "    cart = "
    located = places(bubblewrap_sandbox, "tantivy", tree, text)
    assert [path for path, _, _ in located] == ["near.py", "far.py"]


def test_jedi_looks_up_only_whole_names(bubblewrap_sandbox: Sandbox) -> None:
    tree = {"lib.py": "\n" * 30 + "def cart(x):\n    return x\n", "maps.py": "cartography = 1\n"}
    located = places(bubblewrap_sandbox, "jedi", tree, "from lib import cart\ntotal = cart(1)\nmy_cart = ")
    assert ("lib.py", 30, 50) in located
    assert not any(path == "maps.py" for path, _, _ in located)


def picky(folder: Path, search: str) -> str:
    """Return the spec of an engine that runs `SERVER`."""
    (folder / "server.py").write_text(SERVER)
    (folder / "picky.toml").write_text(
        'requires = ["mcp<2"]\nfiles = ["server.py"]\ncommand = ["python", "{files}/server.py"]\n[search]\n' + search
    )
    return str(folder / "picky.toml")


def test_the_index_is_built_before_the_server_starts_and_ranking_is_kept(
    tmp_path: Path, bubblewrap_sandbox: Sandbox
) -> None:
    engine = picky(tmp_path, 'tool = "find"\neach = "name"\nranked = true\narguments = { name = "{name}" }\n')
    file = Path(engine)
    index = 'index = ["sh", "-c", "tac lib.txt >lib.py"]\n'
    file.write_text(index + file.read_text() + "[places]\nbefore = 0\nafter = 1\n")
    tree = {"lib.txt": "def levy(x):\n    return levy\n" + "\n" * 5 + "levy = 1\n"}
    assert places(bubblewrap_sandbox, engine, tree, "levy(") == [("lib.py", line, line + 1) for line in (0, 6, 7)]
    file.write_text(file.read_text().replace("tac lib.txt >lib.py", "echo no key; exit 3"))
    with pytest.raises(Raised, match="sh ended with 3: no key"):
        places(bubblewrap_sandbox, engine, tree, "levy(")


def test_the_check_shows_an_answer_without_readable_places(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    engine = picky(tmp_path, 'tool = "find"\neach = "name"\narguments = { name = "{name}" }\n')
    Path(engine).write_text(Path(engine).read_text() + '[places]\npath = "file"\n')
    (tmp_path / "server.py").write_text(SERVER.replace("lib.py", "shop/cart.py"))
    outcomes = {finding.name: finding for finding in conformance.check(read(engine), bubblewrap_sandbox)}
    finding = outcomes["answers with places"]
    assert not finding.passed and 'the server\'s last answer began: [{"path": "shop/cart.py"' in finding.detail
    assert "MB of memory" in outcomes["starts and indexes"].detail
    assert "no update: the whole tree is indexed" in outcomes["gives the same answer in another box"].detail


def test_a_tool_that_fails_for_one_name_still_finds_others(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    engine = picky(tmp_path, 'tool = "find"\neach = "name"\narguments = { name = "{name}" }\n')
    tree = {"lib.py": "\n" * 9 + "def levy(x):\n    return x\n"}
    assert places(bubblewrap_sandbox, engine, tree, "absent(levy(other")[0] == ("lib.py", 7, 21)


def test_a_list_may_arrive_as_one_text_block_per_item(tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    engine = picky(tmp_path, 'tool = "find"\neach = "name"\nranked = true\narguments = { name = "{name}" }\n')
    # The SDK writes each item over several lines.
    listing = SERVER.replace("-> str", "-> list[dict]").replace("json.dumps(hits)", "hits")
    (tmp_path / "server.py").write_text(listing)
    tree = {"lib.py": "levy = 1\n" + "\n" * 20 + "levy = 2\n"}
    assert places(bubblewrap_sandbox, engine, tree, "levy(") == [("lib.py", 0, 12), ("lib.py", 19, 33)]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('no licence\\nbuy one')", "no licence | buy one"),
        ("import sys, time; print('listening on 8000', file=sys.stderr); time.sleep(99)", "does it speak stdio? "),
    ],
    ids=["crashes", "never answers"],
)
def test_the_stderr_of_a_server_that_does_not_start_is_shown(
    script: str, words: str, tmp_path: Path, bubblewrap_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = picky(tmp_path, 'tool = "find"\n')
    (tmp_path / "server.py").write_text(script)
    recipe = read(engine)
    quick = replace(recipe, source=recipe.source.replace(b"_GREETING_SECONDS = 120.0", b"_GREETING_SECONDS = 3.0"))
    monkeypatch.setattr(f"{__name__}.read", lambda _: quick)
    with pytest.raises(Raised, match="the server did not start: .*Its stderr ended: ") as caught:
        places(bubblewrap_sandbox, engine, {"lib.py": ""}, "levy(")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "search",
    [
        'tool = "serch"\neach = "name"\narguments = { name = "{name}" }\n',
        'tool = "find"\neach = "name"\narguments = { nam = "{name}" }\n',
        'tool = "find"\narguments = { name = "{query}" }\n',
    ],
    ids=["tool", "argument", "asked once"],
)
def test_a_tool_that_fails_for_all_names_is_a_failure(search: str, tmp_path: Path, bubblewrap_sandbox: Sandbox) -> None:
    with pytest.raises(Raised, match=r"(?s)ToolFailed: the tool (find|serch) failed: .*\(its tools: find\)"):
        places(bubblewrap_sandbox, picky(tmp_path, search), {"lib.py": "def levy(x):\n    return x\n"}, "absent(levy(")
