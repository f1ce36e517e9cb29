"""Result tables of two papers (see `paper_tables`): presets for their rows, and ctxbench's results beside them."""
