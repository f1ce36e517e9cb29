"""Adopt a repository: turn the name of a source into a tested manifest, by guesses from its files.

`adopt` resolves the user's reference to a source with its hash and reads the fetched files. `guess` derives a draft
from them, for Python with `python` and `declared` (all pure). `trial` runs the tests in the sandbox and adds what is
missing. `bench.repositories.manifest` writes the manifest.
"""
