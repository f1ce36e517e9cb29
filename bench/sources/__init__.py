"""Sources of repositories: one file a kind, each with `fetch(source, destination)`."""
