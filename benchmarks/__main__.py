"""Run every benchmark: `python -m benchmarks`."""

import runpy

NAMES = ("metrics", "windows", "build", "cells")

for name in NAMES:
    print(f"\n== {name}", flush=True)
    runpy.run_module(f"benchmarks.{name}", run_name="__main__")
