"""The commands of the dashboard, which the harness lists in its table of commands."""
