"""The tables of the two papers: rows as presets, and ctxbench's numbers beside the papers' numbers."""
