"""Generators: what completes a prompt. A file or folder each; `registry` finds them by name."""
