"""Adopt a repository: from the name of a source to a manifest that was tried, by guesses from its files.

The way, in order: `origin` turns what the user names into a source with its hash, `tree` reads the fetched files,
`guess` says what they tell (`python` and `java` for their languages; pure), `trial` runs the tests in the sandbox and
mends the guess by what is missing, `text` writes the manifest, `adopt` does all of it.
"""
