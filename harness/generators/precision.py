"""Chooses 16 or 32 bits to compute with 16-bit weights on this processor, by timing a matrix product in both."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import platform
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ctxbench.bench.errors import CtxbenchError
from ctxbench.bench.files import locked, read_text, sha256, write_atomic
from ctxbench.harness.generators.models import table

HALVES = ("bfloat16", "float16")
_FILE = "processors.json"
_ROWS, _INNER, _COLUMNS = 256, 1024, 4096
"""Shape of the timed product: a prompt of 256 tokens times a layer of a model with a billion weights."""
_TIMES, _SECONDS = 7, 2.0
"""Maximum number of measurements of each product, and seconds after which to stop."""
_SLOWER = 1.25
"""Ratio of times above which float32 is used. It is not 1, because float32 needs twice the memory."""
_CPUINFO = Path("/proc/cpuinfo")
_logger = logging.getLogger(__name__)


def is_fast(dtype: str) -> bool:
    """Return whether to compute in the 16-bit format `dtype` on this processor; measured only once and stored."""
    path, key = table.home() / _FILE, f"{_processor()} torch {version('torch')} {dtype}"
    ratio = _kept(path).get(key)
    if ratio is None:
        ratio = _ratio(dtype)
        _logger.info("on this processor, %s takes %.2f times as long as float32; stored in %s", dtype, ratio, path)
        with contextlib.suppress(CtxbenchError), locked(path.parent):
            # Keep the first measurement, so that a continued run computes as before.
            write_atomic(path, json.dumps({key: ratio} | _kept(path), indent=2) + "\n")
    return _kept(path).get(key, ratio) <= _SLOWER


def _kept(path: Path) -> dict[str, float]:
    with contextlib.suppress(CtxbenchError, ValueError):
        ratios = json.loads(read_text(path))
        if isinstance(ratios, dict):
            return {key: ratio for key, ratio in ratios.items() if isinstance(ratio, int | float)}
    return {}


def _processor() -> str:
    if not _CPUINFO.is_file():
        return f"{platform.machine()} {platform.processor()}"
    lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = facts.get("model name") or platform.machine()
    return f"{name} {sha256(facts.get('flags') or facts.get('Features') or '')[:8]}"


def _ratio(dtype: str) -> float:
    """Return the best time of a product in `dtype`, relative to the best in float32. Measurements alternate."""
    torch: Any = importlib.import_module("torch")
    best = {dtype: float("inf"), "float32": float("inf")}
    factors = {
        name: [torch.ones(shape, dtype=getattr(torch, name)) for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS))]
        for name in best
    }
    begin = time.perf_counter()
    with torch.inference_mode():
        for count in range(_TIMES):
            if count and time.perf_counter() - begin > _SECONDS:
                break
            for name, (left, right) in factors.items():
                start = time.perf_counter()
                left @ right
                best[name] = min(best[name], time.perf_counter() - start)
    return round(best[dtype] / best["float32"], 3)
