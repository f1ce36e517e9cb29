"""`ctxbench dashboard`: the stored runs as web pages."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import socket
from pathlib import Path
from typing import Any

import click

from ctxbench.bench.errors import InputFault
from ctxbench.bench.home import Home
from ctxbench.harness.cli.options import db_option, home_option

_LOCAL = "127.0.0.1"


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8501, show_default=True, help="Where to listen; 0: any free port."
)
@click.option(
    "--host",
    default=_LOCAL,
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen at. Any other than this machine's own shows the results to whoever can reach it.",
)
@home_option
@db_option
def dashboard(*, port: int, host: str, home: Home, db: str | None) -> None:
    """Show the stored runs as web pages, on this machine; end it with Ctrl-C. Nothing is written."""
    if importlib.util.find_spec("streamlit") is None:
        cure = "run `make dashboard`, or `pip install -e '.[dashboard]'`"
        raise InputFault("the dashboard's pages need Streamlit", cure=cure)
    from ctxbench.harness.store.store import open_reader

    open_reader(db or home.database).close()
    port = _free(host, port)
    # The pages run in this process: they read what the command was given where `dashboard.data` looks for it.
    os.environ["CTXBENCH_HOME"] = str(home.root)
    os.environ["CTXBENCH_DB"] = db or home.database
    bracketed = f"[{host}]" if ":" in host else host
    click.echo(f"http://{bracketed}:{port}  (Ctrl-C ends it)")
    serve(_options(host, port))


def _free(host: str, port: int) -> int:
    """Return a port that can be listened at.

    Raises:
        InputFault: if it is taken, or there is no such address here.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            # As the server does: a port that was just given back is free.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind((host, port))
            return int(tried.getsockname()[1])
    except OSError as error:
        cure = "give another with --port, or --port 0 for any that is free"
        raise InputFault(
            f"cannot listen there ({error.strerror or error})", where=f"{host}:{port}", cure=cure
        ) from None


def _options(host: str, port: int) -> dict[str, Any]:
    """Return Streamlit's options: no browser opened, nothing watched, nothing told to anyone, nothing to deploy."""
    from ctxbench.dashboard.theme import FILE

    local = host in {_LOCAL, "localhost", "::1"}
    return {
        "server_headless": True,
        "server_address": host,
        "server_port": port,
        "server_fileWatcherType": "none",
        "server_runOnSave": False,
        "server_enableXsrfProtection": True,
        "server_enableCORS": True,
        # Another site's name that is made to point here must not be able to read the results.
        "server_allowedHosts": [_LOCAL, "localhost", "[::1]"] if local else None,
        "browser_gatherUsageStats": False,
        "client_toolbarMode": "viewer",
        "client_showErrorDetails": "none",
        "client_showErrorLinks": False,
        "global_developmentMode": False,
        "logger_hideWelcomeMessage": True,
        "logger_level": "warning",
        "theme_base": str(FILE),
    }


def serve(options: dict[str, Any]) -> None:
    """Run the pages until the process is told to end."""
    from streamlit.web import bootstrap

    from ctxbench.dashboard import start

    script = str(Path(start.__file__).with_name("main.py"))
    bootstrap.load_config_options(options)
    # The server ends at either signal once it is up; before that both are to end us just as quietly.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # It says on stdout that it ends, and does not end where nobody reads that any more.
    with (
        contextlib.suppress(KeyboardInterrupt),
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        contextlib.redirect_stdout(nowhere),
    ):
        bootstrap.run(script, False, [], options)
