"""Function samples mined from repositories with tests: found, cut, classified, certified."""
