"""Settings that make numpy and its BLAS compute as on other processors."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.helpers.extras import missing

ROOT = Path(__file__).parents[2]
CORES = {
    "Prescott": "Katmai",
    "Nehalem": "Nehalem",
    "Sandybridge": "Sandybridge",
    "Haswell": "Haswell",
}
"""Value of OPENBLAS_CORETYPE -> the name of its kernels in numpy's OpenBLAS."""
NEWEST = {"SkylakeX": "SkylakeX"}
"""The same, for processors with AVX-512."""


def settings() -> dict[str, dict[str, str]]:
    """Return name -> environment of every setting that this processor supports."""
    features = _features()
    if platform.machine() != "x86_64" or not features.get("AVX2"):
        missing("the settings of BLAS can be tested only on x86-64 with AVX2")
    cores = CORES | (NEWEST if features.get("AVX512_SKX") or features.get("X86_V4") else {})
    found = {core: {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"} for core in cores}
    found["two threads"] = {"OPENBLAS_NUM_THREADS": "2"}
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched()), "OPENBLAS_NUM_THREADS": "1"}
    # Like numpy, the C library chooses its logarithms and exponentials by the processor's features.
    plain["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"
    return {**found, "plain": plain}


def dispatched() -> list[str]:
    """Return the instruction sets that numpy uses here beyond its baseline."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    return [name for name in __cpu_dispatch__ if _features().get(name)]


def _features() -> Mapping[str, bool]:
    from numpy._core._multiarray_umath import __cpu_features__

    features: dict[str, bool] = __cpu_features__
    return features


def python(*arguments: str, setting: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def core(setting: Mapping[str, str]) -> str:
    said = python("-c", "import numpy", setting={**setting, "OPENBLAS_VERBOSE": "2"}).stderr
    return next(line.removeprefix("Core: ") for line in said.splitlines() if line.startswith("Core: "))
