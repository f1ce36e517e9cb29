"""Where repositories come from: one small file a kind, each with `fetch(source, destination)`."""
