"""The leaderboard as one self-contained HTML file. Needs Jinja2 and no web framework."""
