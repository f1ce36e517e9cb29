"""The contents of the pages: rows of cells and chart specifications from boards and stored rows. Pure."""
