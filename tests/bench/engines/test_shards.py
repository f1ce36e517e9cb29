"""A shard contains each sample's engine use. Other seconds for equal work do not change the shard's name."""

from dataclasses import replace
from pathlib import Path

from ctxbench.bench.engines.types import EngineUse, Mode
from ctxbench.harness.store.shard import Shard, encode, read
from tests.harness.store.making import make_finished, make_generation, make_spec

USE = EngineUse(engine="ripgrep", version="ripgrep 14", mode=Mode.SHARED, index_seconds=1.5, calls=2, places=7, cut=1)


def shard(use: EngineUse) -> Shard:
    return Shard(
        spec=make_spec(),
        generations=(make_generation(),),
        finished=(make_finished("demo/0", engines=(use,)),),
    )


def test_a_shard_contains_engine_use_and_its_name_ignores_seconds(tmp_path: Path) -> None:
    name, content = encode(shard(USE))
    (tmp_path / name).write_bytes(content)
    assert read(tmp_path / name).finished[0].engines == (USE,)
    assert encode(shard(replace(USE, index_seconds=9.0)))[0] == name
