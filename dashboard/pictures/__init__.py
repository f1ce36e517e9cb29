"""Pictures without a script, drawn into the report: curves."""
