"""The trees of engines hold only what the views of all their samples show."""

from __future__ import annotations

from pathlib import Path

from ctxbench.bench.engines.box import cut_target, masked_lines, tree_of_file, tree_of_repository, without
from ctxbench.bench.repository import view
from ctxbench.bench.types import Cursor
from tests.helpers.samples import make_sample
from tests.helpers.trees import make_snapshot

LINES = [
    "import tax",
    "import cart",
    "",
    "def pay(user):",
    "    one = tax.add(1)",
    "    two = cart.add(2)",
    "    return two",
]
FILES = {
    "shop/pay.py": "\n".join(LINES) + "\n",
    "shop/tax.py": "def add(n):\n    return n\n",
    "tests/test_pay.py": "x = 1\n",
}


def sample(line: int, masked: tuple[int, int]):
    before = LINES[line].partition("= ")[0] + "= "
    rows = ["" if masked[0] <= at < masked[1] else row for at, row in enumerate(LINES[:line])]
    return make_sample(
        id=f"demo/shop/pay.py#L{line}",
        path="shop/pay.py",
        cursor=Cursor(line=line, column=len(before)),
        prefix="\n".join([*rows, before]),
        masked=(masked,),
        hidden=("tests/",),
    )


def test_a_tree_of_a_file_ends_at_the_first_cursor_without_any_masked_line(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    samples = [sample(4, (0, 1)), sample(5, (1, 2))]
    tree = tree_of_file(snapshot, samples)
    assert tree["shop/pay.py"] == "\n\n\ndef pay(user):\n"
    assert set(tree) == {"shop/pay.py", "shop/tax.py"} and tree["shop/tax.py"] == FILES["shop/tax.py"]
    for one in samples:
        shown = view(snapshot, one.query(), one.masked, one.hidden)
        for path, text in tree.items():
            rows = zip(text.splitlines(), shown.read(path).split("\n"), strict=False)
            assert all(in_tree in ("", in_view) for in_tree, in_view in rows)


def test_a_tree_of_a_repository_is_cut_for_each_sample(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    later = sample(5, (1, 2))
    assert tree_of_repository(snapshot, [later])["shop/pay.py"] == FILES["shop/pay.py"]
    assert cut_target(snapshot, later) == "import tax\n\n\ndef pay(user):\n    one = tax.add(1)\n"


def test_of_another_version_of_the_file_nothing_is_shown(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, {**FILES, "shop/pay.py": "other = 1\n"})
    assert tree_of_file(snapshot, [sample(4, (0, 1))])["shop/pay.py"] == ""


def test_a_line_that_one_sample_masks_is_in_no_query_of_that_file(tmp_path: Path) -> None:
    snapshot = make_snapshot(tmp_path, FILES)
    samples = [sample(4, (0, 1)), sample(5, (1, 2))]
    lines = masked_lines(snapshot, samples)
    assert lines == {"import tax", "import cart"}
    assert [without(each.prefix, lines).split("\n")[:4] for each in samples] == [["", "", "", LINES[3]]] * 2
