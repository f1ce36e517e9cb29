"""The tables of the two papers: presets of their rows, and ctxbench's results beside the printed numbers."""
