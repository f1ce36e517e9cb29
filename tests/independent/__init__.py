"""The board's numbers, computed a second time from the stored rows by independent code."""
