"""Generators: models that complete prompts. A file or folder each; `registry` finds them by name."""
