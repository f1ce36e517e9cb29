"""Views: what a strategy is shown of a repository for one sample."""
