"""The dashboard's commands, registered in an entry point that `harness.cli.main` reads."""

COMMANDS = {
    "runs": (
        "ctxbench.dashboard.cli.runs:runs",
        "List the stored runs: progress, errors, and the command that continues each.",
    ),
    "dashboard": ("ctxbench.dashboard.cli.dashboard:dashboard", "Show the stored runs as web pages."),
    "report": (
        "ctxbench.dashboard.cli.dashboard:report",
        "Write the leaderboard as one file, for a paper or a web page.",
    ),
    "site-board": (
        "ctxbench.dashboard.cli.dashboard:site_board",
        "Write a public board of result packages as a static site.",
    ),
}
"""Command -> its location (``module:attribute``) and its line in the list of commands."""
