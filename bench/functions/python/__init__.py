"""Mining Python: documented functions by syntax, levels by names, tests by coverage."""
