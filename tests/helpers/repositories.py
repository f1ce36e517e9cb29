"""Git repositories built by tests, and manifests of local sources."""

import os
import subprocess
from pathlib import Path

from ctxbench.bench.repositories import manifest
from ctxbench.bench.repositories.manifest import RepoManifest

_OWN = ("user.name=a", "user.email=a@example.org", "commit.gpgsign=false", "protocol.file.allow=always")


def git(folder: Path, *arguments: str, **variables: str) -> str:
    """Run git with the settings of these tests only; return its output."""
    settings = [word for setting in (*_OWN, "init.defaultBranch=main") for word in ("-c", setting)]
    environment = {**os.environ, **variables}
    command = ["git", *settings, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def manifest_of(folder: Path, source: str, *, name: str = "demo", version: str = "1.0", head: str = "") -> RepoManifest:
    """Write and load the manifest of a Python repository. `source` contains its tables of sources."""
    path = folder / f"{name}.toml"
    text = f'name = "{name}"\nlanguage = "python"\nlicense = "MIT"\nversion = "{version}"\n{head}{source}'
    path.write_text(text)
    return manifest.load(str(path))
