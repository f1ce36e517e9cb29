"""From boards and stored rows to what a page shows: rows of cells and chart specifications. Pure, no I/O."""
