"""Fetch the packages that the weights are fitted on, by name, version and SHA-256, and unpack them.

Python packages come as wheels through pip, Java ones as Debian source packages through apt with a
configuration of its own (Debian 12; nothing of the system's is changed). `sources.json` lists them
with their licences; none is in a benchmark, quick start or execution set.

    python -m scripts.fit_incontext.fetch LANGUAGE DIR
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from ctxbench.bench.errors import InputFault
from ctxbench.bench.files import sha256_file

SOURCES = Path(__file__).with_name("sources.json")
_DEBIAN = Path("/etc/apt/sources.list.d/debian.sources")


def wheel(name: str, version: str, folder: Path) -> None:
    """Download one wheel."""
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    platform = ["--implementation", "py", "--abi", "none", "--platform", "any"]
    subprocess.run([*command, *platform, f"{name}=={version}", "-d", str(folder)], check=True)


def debian_configuration(folder: Path) -> dict[str, str]:
    """Write an apt configuration with source packages in it; return the environment that selects it."""
    root = folder.resolve() / "apt"
    for part in ("lists/partial", "cache/archives/partial", "etc/parts"):
        (root / part).mkdir(parents=True, exist_ok=True)
    sources = _DEBIAN.read_text("utf-8").replace("Types: deb\n", "Types: deb deb-src\n")
    (root / "etc/parts/debian.sources").write_text(sources, "utf-8")
    lines = {
        "Dir::Etc::SourceList": "/dev/null",
        "Dir::Etc::SourceParts": root / "etc/parts",
        "Dir::State::Lists": root / "lists",
        "Dir::Cache": root / "cache",
        "APT::Sandbox::User": os.environ.get("USER", "root"),
    }
    (root / "apt.conf").write_text("".join(f'{key} "{value}";\n' for key, value in lines.items()), "utf-8")
    return {**os.environ, "APT_CONFIG": str(root / "apt.conf")}


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a wheel or a tarball."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)  # noqa: S202 - zipfile itself drops absolute paths and ..
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def main() -> None:
    """Fetch, check and unpack each package into DIR/ROLE/NAME: ``fit``, ``tune`` or ``test``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=["python", "java"])
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    archives = options.folder / "archives"
    archives.mkdir(parents=True, exist_ok=True)
    environment: dict[str, str] = {}
    if options.language == "java":
        environment = debian_configuration(options.folder)
        subprocess.run(["apt-get", "update", "-qq"], check=True, env=environment)
    for source in json.loads(SOURCES.read_text("utf-8"))[options.language]:
        archive = archives / source["file"]
        if not archive.exists() and options.language == "python":
            wheel(source["name"], source["version"], archives)
        elif not archive.exists():
            request = f"{source['name']}={source['version']}"
            command = ["apt-get", "source", "-qq", "--download-only", request]
            # Only upstream's tarball is needed; apt also fails if the archive lacks Debian's part.
            subprocess.run(command, check=False, env=environment, cwd=archives)
        if sha256_file(archive) != source["sha256"]:
            raise InputFault("its SHA-256 is not the pinned one", where=str(archive), cure="delete it and fetch again")
        unpack(archive, options.folder / source["role"] / source["name"])
        print(source["name"])


if __name__ == "__main__":
    main()
