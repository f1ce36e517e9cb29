"""Mining of function samples from repositories with tests."""
