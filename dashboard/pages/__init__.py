"""The pages' layout. `dashboard.views` builds their tables and charts."""
