"""Writes docs/scale.svg and the table of docs/scale.md from the simulation of many workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.scale import Point, curves, measured_merge
from scripts import log_place, write_section

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, PICTURE = DOCS / "scale.md", DOCS / "scale.svg"
_BEGIN, _END = "<!-- simulated: python -m scripts.scale_page -->\n", "<!-- end -->"
_WIDTH, _HEIGHT, _EDGE = 760, 420, 64
_WORKERS, _RATE = (1, 1000), (1, 20_000)
_COLOURS = ("#1f77b4", "#2ca02c", "#9467bd", "#d62728")
_IN_TABLE = (1, 10, 100, 1000)


def table(settings: Mapping[str, Sequence[Point]], merge: float) -> str:
    """Return the page's table: throughput, the number of workers that saturates a shared resource, and its name."""
    head = " | ".join(f"{count:,} worker{'s' * (count > 1)}" for count in _IN_TABLE)
    lines = [f"| samples per second | {head} | saturates at | bottleneck |", f"|---|{'---|' * (len(_IN_TABLE) + 2)}"]
    for name, points in settings.items():
        rates = [f"{point.throughput:,.1f}" for point in points if point.workers in _IN_TABLE]
        full = next((point for point in points if point.busiest != "workers"), None)
        place = (f"{full.workers:,} workers", full.busiest) if full else ("", "nothing")
        lines.append(f"| {name} | {' | '.join([*rates, *place])} |")
    return "\n".join([*lines, "", f"Merging a sample took {1e3 * merge:.1f} ms of processor time.", ""])


def picture(settings: Mapping[str, Sequence[Point]]) -> str:
    """Return an SVG: one curve per setting, samples per second against workers, both axes logarithmic."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
    ]
    for workers in (1, 10, 100, 1000):
        x = _across(workers)
        parts.append(f'<path d="M{x:.0f} {_EDGE / 2:.0f}V{_HEIGHT - _EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{x:.0f}" y="{_HEIGHT - _EDGE + 18}" text-anchor="middle">{workers:,}</text>')
    for rate in (1, 10, 100, 1000, 10_000):
        y = _up(rate)
        parts.append(f'<path d="M{_EDGE} {y:.0f}H{_WIDTH - _EDGE}" stroke="#ddd"/>')
        parts.append(f'<text x="{_EDGE - 6}" y="{y + 4:.0f}" text-anchor="end">{rate:,}</text>')
    for row, ((name, points), colour) in enumerate(zip(settings.items(), _COLOURS, strict=True)):
        reached = [point for point in points if point.throughput >= _RATE[0]]
        path = " ".join(f"{_across(point.workers):.1f},{_up(point.throughput):.1f}" for point in reached)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{_across(point.workers):.1f}" cy="{_up(point.throughput):.1f}" r="4" '
            f'fill="{colour if point.busiest == "workers" else "#fff"}" stroke="{colour}">'
            f"<title>{name}, {point.workers:,} workers: {point.throughput:,.1f} samples/s, "
            f"{point.busiest} at {100 * point.use:.0f} %</title></circle>"
            for point in reached
        ]
        y = _EDGE / 2 + 18 + 18 * row
        parts.append(f'<circle cx="{_EDGE + 14}" cy="{y - 4}" r="5" fill="{colour}"/>')
        parts.append(f'<text x="{_EDGE + 24}" y="{y}">{name}</text>')
    words = "workers of one core; hollow: a shared resource is saturated"
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 16}" text-anchor="middle">{words}</text>')
    label = "merged samples per second"
    parts.append(f'<text transform="translate(14 {_HEIGHT / 2}) rotate(-90)" text-anchor="middle">{label}</text></svg>')
    return "\n".join(parts) + "\n"


def _across(workers: float) -> float:
    return log_place(workers, _WORKERS, _EDGE, _WIDTH - _EDGE)


def _up(rate: float) -> float:
    return log_place(rate, _RATE, _HEIGHT - _EDGE, _EDGE / 2)


def main() -> None:
    """Measure, simulate, and write the table and the picture into the docs."""
    merge = measured_merge().merge
    settings = curves(merge)
    write_section(PAGE, _BEGIN, _END, table(settings, merge))
    PICTURE.write_text(picture(settings), encoding="utf-8")


if __name__ == "__main__":
    main()
