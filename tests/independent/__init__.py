"""The board's numbers, computed a second time from the stored rows by code that shares nothing with the first."""
