"""The pages: only layout. `dashboard.views` builds their tables and charts."""
