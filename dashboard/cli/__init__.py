"""The commands of the dashboard: it stands above the harness, which names them in its table of commands."""
