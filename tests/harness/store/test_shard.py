"""Reading a shard returns the rows that were written."""

from pathlib import Path

import pytest

from ctxbench.harness.store.shard import Shard, encode, read, write
from tests.harness.store.making import make_finished, make_generation, make_spec


@pytest.mark.parametrize("mark", ["\u0085", "\u2028", "\u2029", "\x0c", "\x1c", "\r", "\r\n", "\n"])
def test_line_separators_in_texts_are_read_unchanged(mark: str, tmp_path: Path) -> None:
    answer = make_generation(prompt=f"x{mark} = ", text=f"'a{mark}b'")
    finished = make_finished("demo/0", prompt=answer.prompt, bits=())
    shard = Shard(spec=make_spec(), generations=(answer,), finished=(finished,))
    write(tmp_path, shard)
    assert read(tmp_path / encode(shard)[0]) == shard
