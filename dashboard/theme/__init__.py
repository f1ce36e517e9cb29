"""How the site looks: `theme.toml`, colours for light and dark in Streamlit's own words, no font from elsewhere."""

from pathlib import Path

FILE = Path(__file__).with_name("theme.toml")

# Okabe and Ito's palette, which stays apart for most kinds of colour blindness; darkened where it is read on white.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A5195", "#5F6B6D")
"""Colours of series in charts, readable on light and dark."""
