"""The pages: layout only. What they show is made by `dashboard.views` from what the store holds."""
