"""How figures look: one style, one palette, files for a paper and inline SVG for a page.

Figures are built on `matplotlib.figure.Figure` without pyplot, so nothing is global and nothing
leaks. Draw inside `style()`, which also works as a decorator:

    @figures.style()
    def efficiency(results):
        figure, axes = figures.canvas(height=2.4)
        axes.plot(steps, values, **figures.line(0))
        return figure

The categories' colours are those of Okabe and Ito (2008), told apart with every common colour
vision; line patterns and markers change along, so that a figure survives a grey printer.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from markupsafe import escape
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import ArrayLike

from evidence.described import describe
from evidence.runtime.files import write_by, write_text

BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, YELLOW = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#e69f00",
    "#cc79a7",
    "#56b4e9",
    "#f0e442",
)
PALETTE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY)
"""Colours of categories, in the order of use. Yellow is left out: too faint for a line."""

INK, FAINT, RULE, PAPER = "#1b1c20", "#6c6e76", "#dcdde1", "#fefefe"
"""Text and axes, secondary text, grid lines, background. On a page they follow its theme."""

_NARROWEST = 100
"""Pixels for an inch of a figure on a page at least: text of 8 points then has 11 pixels."""

HEAT = "cividis"
"""Colour map of quantities: perceptually uniform, the same with and without colour vision."""

_PATTERNS = (
    "solid",
    (0, (5, 1.6)),
    (0, (1.2, 1.4)),
    (0, (6, 1.6, 1.2, 1.6)),
    (0, (3, 1)),
    (0, (9, 1.2)),
)
_MARKERS = ("o", "D", "s", "^", "v", "P")
_THEMED = {
    INK: "currentColor",
    FAINT: f"var(--faint, {FAINT})",
    RULE: f"var(--rule, {RULE})",
    PAPER: f"var(--paper, {PAPER})",
    BLUE: f"var(--blue, {BLUE})",
    VERMILLION: f"var(--vermillion, {VERMILLION})",
    GREEN: f"var(--green, {GREEN})",
}
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans"],
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "savefig.facecolor": PAPER,
    "image.cmap": HEAT,
    "svg.hashsalt": "evidence",
}


@contextmanager
def style() -> Iterator[None]:
    """The style every figure is drawn in, as a context manager or a decorator."""
    with matplotlib.rc_context(_STYLE):
        yield


def canvas(
    rows: int = 1, columns: int = 1, width: float = 6.4, height: float = 3.0, **subplots: Any
) -> tuple[Figure, Any]:
    """A figure and its axes (one `Axes`, or an array of them), sizes in inches."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **subplots)


def line(index: int, **changes: Any) -> dict[str, Any]:
    """Keywords of `Axes.plot` for category `index`: its colour with its line pattern."""
    return {"color": PALETTE[index % 6], "linestyle": _PATTERNS[_second(index)], **changes}


def point(index: int, **changes: Any) -> dict[str, Any]:
    """Keywords of `Axes.errorbar` for category `index`: its colour with its marker, no line."""
    colour = PALETTE[index % 6]
    return {"color": colour, "marker": _MARKERS[_second(index)], "linestyle": "none", **changes}


def _second(index: int) -> int:
    """Pattern or marker of a category: from the seventh on, colours come again with another one."""
    return (index + index // 6) % 6


def legend_below(figure: Figure, **changes: Any) -> None:
    """One legend for all axes, each name once, under them."""
    named = {
        name: handle
        for axes in figure.axes
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    usual: dict[str, Any] = {"loc": "outside lower center", "ncols": min(6, len(named))}
    figure.legend(named.values(), named.keys(), **usual | changes)


def band(axes: Axes, x: ArrayLike, low: ArrayLike, high: ArrayLike, index: int) -> None:
    """The interval around a curve of category `index`; an end that is None leaves a gap."""
    ends = np.array(low, dtype=float), np.array(high, dtype=float)
    axes.fill_between(x, ends[0], ends[1], color=PALETTE[index % 6], alpha=0.18, linewidth=0)


def save(figure: Figure, folder: str | Path, name: str) -> list[Path]:
    """Write `folder/name.svg` (glyphs as outlines, so that any program shows it alike) and
    `folder/name.png` (220 dots an inch). The same figure gives the same SVG, byte for byte.
    """
    folder = Path(folder)
    vector = write_text(folder / f"{name}.svg", _svg(figure, fonttype="path"))
    with style():
        _lay_out(figure)
        write = partial(figure.savefig, format="png", dpi=220)
        return [vector, write_by(folder / f"{name}.png", write)]


def svg(figure: Figure) -> str:
    """The figure as an inline `<svg>` element that scales with, and takes the theme of, its page.

    Text stays text; on a narrow page the figure is no narrower than that can be read. For those who
    don't see it, it carries what `evidence.described` says. Identifiers carry a digest of the
    content, so that figures on one page do not reach into each other.
    """
    text = _svg(figure, fonttype="none", transparent=True)
    text = re.sub(
        r"\s*<(metadata|style)\b.*?</\1>", "", text[text.index("<svg") :], flags=re.DOTALL
    )
    for colour, themed in _THEMED.items():
        text = text.replace(colour, themed)
    prefix = f"f{hashlib.sha256(text.encode()).hexdigest()[:8]}-"
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}", text)
    # The page gives the size, the viewBox the proportions; the joins stood in the style removed.
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (?:width|height)="[^"]*"', "", opening)
    narrowest = _NARROWEST * figure.get_figwidth()
    about = f'role="img" aria-label="{escape(describe(figure))}"'
    return f'{opening} {about} style="min-width: {narrowest:.0f}px" stroke-linejoin="round">{rest}'


def _lay_out(figure: Figure) -> None:
    """Find room for everything once, not again for each file: it takes most of the time."""
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.execute(figure)
        # Not "none": a placeholder would have each file drawn twice.
        figure.set_layout_engine(None)


def _svg(figure: Figure, fonttype: str, **options: Any) -> str:
    stream = io.StringIO()
    with matplotlib.rc_context({**_STYLE, "svg.fonttype": fonttype}):
        _lay_out(figure)
        figure.savefig(stream, format="svg", metadata={"Date": None}, **options)
    return stream.getvalue()
