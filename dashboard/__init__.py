"""The stored runs as web pages, and as one file: reads the store and the leaderboard, runs nothing, decides nothing."""
