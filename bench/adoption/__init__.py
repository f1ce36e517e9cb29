"""Adopt a repository: turn the name of a source into a tested manifest, by guesses from its files."""
