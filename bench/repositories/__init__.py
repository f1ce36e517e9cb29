"""Repositories: manifests, the sources of their copies, checkouts in the home, and snapshots of their source files."""
