"""Encoders: texts to vectors of length 1, by name.

    encoder = get("minilm")
    vectors = encoder.encode(["def load(path): …", "read a file"])      # shape (2, 384)

Strategies name an encoder by its spec (``encoder=unixcoder(path=/models/unixcoder)``). `Vectors` in
`bench.retrieval.encoders.vectors` keeps what was encoded once.
"""

from ctxbench.bench.retrieval.encoders.registry import COMMAND, canonical, encoder, get, names, read, summary

__all__ = ["COMMAND", "canonical", "encoder", "get", "names", "read", "summary"]
