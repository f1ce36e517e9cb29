"""The pages: layout only. `dashboard.views` makes their tables and charts from stored rows."""
