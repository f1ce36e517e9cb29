"""The look of the site: `theme.toml`, colours for light and dark, no font from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("theme.toml")

# Okabe and Ito's palette, which stays apart for most kinds of colour blindness; darkened where it is read on white.
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B58900", "#56B4E9", "#7A5195", "#5F6B6D")
"""Colours of series in charts, readable on light and dark."""


INK = {"light": "#39444A", "dark": "#E4E9ED"}
"""Colour of what is written in a chart; Streamlit's own on white is too pale to read well."""


def icon() -> Any:
    """Return the site's sign, three bars, 32 by 32 pixels: Streamlit would fetch any of its own from elsewhere."""
    # The command that only needs `FILE` starts without them.
    import numpy as np  # noqa: PLC0415
    from PIL import Image  # noqa: PLC0415

    pixels = np.zeros((32, 32, 4), dtype=np.uint8)
    for x, y, colour in ((3, 14, 0x5F6B6D), (12, 4, 0x0072B2), (21, 19, 0xB58900)):
        pixels[y:30, x : x + 8] = (colour >> 16, colour >> 8 & 255, colour & 255, 255)
    return Image.fromarray(pixels)
