"""Adoption of a repository (`ctxbench repo add`): guess a manifest from its files, and try its tests."""
