"""The ``git`` source: the files of one commit, exactly as they are stored, without history.

The user's and the machine's git configuration, hooks, attributes and filters have no say, so that a
commit gives the same files everywhere; certificates and proxies of the environment are honoured.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime

from ctxbench.bench.repositories.sources import Destination, GitSource, run_program, unpack

_SECONDS = 900.0
_PASSED_ON = ("GIT_SSL_", "GIT_HTTP_", "GIT_PROXY_", "GIT_SSH")
# These win over the .gitattributes of the tree: `git archive` must leave nothing out (many projects mark
# their tests export-ignore) and rewrite nothing.
_ATTRIBUTES = "* -export-ignore -export-subst -text !eol -ident !filter !working-tree-encoding\n"


def fetch(source: GitSource, to: Destination) -> date:
    """Fetch the commit, depth one, and lay out its files; submodules are left out.

    Returns:
        The day (UTC) of the commit.

    Raises:
        Unreachable: if git is not installed, the server cannot be reached or does not have the commit.
    """
    bare, archive = to.scratch / "bare", to.scratch / "tree.tar"

    def git(*arguments: str) -> str:
        return run_program(
            ["git", "-c", "core.hooksPath=/dev/null", *arguments],
            folder=to.scratch,
            environment=_environment(),
            seconds=_SECONDS,
            source=source,
        )

    git("init", "--quiet", "--bare", "--template=", str(bare))
    (bare / "info").mkdir(exist_ok=True)
    (bare / "info" / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
    at = ("--git-dir", str(bare))
    git(*at, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", source.url, source.commit)
    git(*at, "archive", "--format=tar", f"--output={archive}", source.commit)
    dropped = unpack(archive, to.tree, strip=False)
    if dropped:
        to.report(f"{source}: {dropped} links left out")
    seconds = int(git(*at, "show", "--no-patch", "--format=%ct", source.commit))
    return datetime.fromtimestamp(seconds, UTC).date()


def _environment() -> dict[str, str]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_PASSED_ON)}
    return inherited | {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_SSH_COMMAND": inherited.get("GIT_SSH_COMMAND", "ssh -oBatchMode=yes"),
        "LC_ALL": "C",
    }
