"""The tables of the two papers: their rows as presets, and ctxbench's numbers next to theirs."""
