"""Run every benchmark in its own process: `python -m benchmarks`."""

import subprocess
import sys

NAMES = ("windows", "retrieval", "overhead", "million", "sandbox", "scale")

for name in NAMES:
    print(f"\n== {name}", flush=True)
    subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=True)
