"""Repositories: manifests, sources, checkouts in the home folder, and snapshots of source files."""
