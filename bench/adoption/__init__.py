"""Adopt a repository: from the name of a source to a manifest that was tried, by guesses from its files.

The way, in order: `adopt` turns what the user names into a source with its hash and reads the fetched files, `guess`
says what they tell (with `python` and `declared` for Python; pure), `trial` runs the tests in the sandbox and mends the
guess by what is missing, `bench.repositories.manifest` writes the manifest.
"""
