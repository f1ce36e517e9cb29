"""The leaderboard as one self-contained file. Needs no web framework: Jinja2 and nothing else."""
