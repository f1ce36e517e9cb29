"""Mines function samples from repositories with tests."""
