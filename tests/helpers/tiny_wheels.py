"""Wheels of a few lines, which pip installs from a folder without a network."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path


def tiny_wheel(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    requires: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
) -> Path:
    """Write a wheel with the package `name`, or with `files`."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        *(f"Requires-Dist: {r}\n" for r in requires),
    ]
    held = {f"{name}/__init__.py": f"version = {version!r}\n"} if files is None else dict(files)
    held[f"{info}/METADATA"] = "".join(metadata)
    held[f"{info}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    held[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name}-says = {name}:main\n"
    held[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*held, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for inner, text in held.items():
            wheel.writestr(inner, text)
    return path
