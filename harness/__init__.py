"""Runs strategies, stores and ranks their results, and implements the command line."""
