"""This processor made to work as others do: by the settings of numpy and of its BLAS, which take effect at start."""

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
"""What OPENBLAS_CORETYPE asks for -> how numpy's OpenBLAS calls the kernels that it then uses."""
NEWEST = {"SkylakeX": "SkylakeX"}
"""The same, for processors with AVX-512."""


def settings() -> dict[str, dict[str, str]]:
    """Return name -> environment of every setting that this processor can take on."""
    features = _features()
    if platform.machine() != "x86_64" or not features.get("AVX2"):
        missing("settings of BLAS are tried on x86-64 with AVX2")
    cores = CORES | (NEWEST if features.get("AVX512_SKX") or features.get("X86_V4") else {})
    found = {core: {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": "1"} for core in cores}
    found["two threads"] = {"OPENBLAS_NUM_THREADS": "2"}
    plain = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched()), "OPENBLAS_NUM_THREADS": "1"}
    # The C library chooses its logarithms and exponentials by what the processor can do, as numpy does.
    plain["GLIBC_TUNABLES"] = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-FMA,-FMA4,-AVX2_Usable,-FMA_Usable"
    return {**found, "plain": plain}


def dispatched() -> list[str]:
    """Return the sets of instructions that numpy uses here beyond those it always does."""
    from numpy._core._multiarray_umath import __cpu_dispatch__

    return [name for name in __cpu_dispatch__ if _features().get(name)]


def _features() -> Mapping[str, bool]:
    from numpy._core._multiarray_umath import __cpu_features__

    features: dict[str, bool] = __cpu_features__
    return features


def python(*arguments: str, setting: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run Python with arguments under a setting; warnings are errors."""
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
    """Return which kernels OpenBLAS uses under a setting, as it says itself."""
    said = python("-c", "import numpy", setting={**setting, "OPENBLAS_VERBOSE": "2"}).stderr
    return next(line.removeprefix("Core: ") for line in said.splitlines() if line.startswith("Core: "))
