"""Mine function samples from repositories with tests."""
