"""Runs strategies, keeps what came of them and ranks it; holds the command line."""
