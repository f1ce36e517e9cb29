"""The room for the leaderboard as a web page; reads the store, decides nothing. Use `ctxbench leaderboard` today."""
