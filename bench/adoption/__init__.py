"""Adoption of a repository (`ctxbench repo add`): guess a manifest from the files, and run the tests."""
