"""The tables of the two papers: their rows as presets, and our own numbers beside theirs."""
