"""The commands of the dashboard, registered as entry points: a table that `harness.cli.main` reads."""

COMMANDS = {
    "runs": (
        "ctxbench.dashboard.cli.runs:runs",
        "List the stored runs: how far, what went wrong, the command to go on.",
    ),
    "dashboard": ("ctxbench.dashboard.cli.dashboard:dashboard", "Show the stored runs as web pages."),
    "report": (
        "ctxbench.dashboard.cli.dashboard:report",
        "Write the leaderboard as one file, for a paper or a web page.",
    ),
}
"""Name -> where the command is (``module:attribute``), and its line in the table of commands."""
