"""Pictures without a script, drawn by the same code on the pages and in the report: grids of shaded cells, curves."""
