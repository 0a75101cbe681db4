"""What a figure shows, in words: alternative texts made from the numbers that are drawn.

`figures.svg` puts them on the figures of a page. A figure that has a text of its own, set by
`figure.set_label`, keeps that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch
from matplotlib.ticker import FixedLocator, PercentFormatter

_MOST = 12
"""Things told of a panel; of more, how many there are."""
_LONGEST = 1500
"""Characters of a description; further panels are counted."""

_Look = tuple[str, str, str]


class _Drawn(NamedTuple):
    """A line, a set of dots or of bars: its name, or "", and where it lies. f64[n] each."""

    name: str
    x: np.ndarray
    y: np.ndarray


class _Page(NamedTuple):
    """What a panel's reader knows from the others.

    Attributes:
      panels: of the figure.
      looks: names by the colour, marker and pattern that a legend shows, wherever it stands.
    """

    panels: list[Axes]
    looks: dict[_Look, str]


def describe(figure: Figure) -> str:
    """A sentence a panel: what is on its axes, and the numbers of everything that has a name."""
    if figure.get_label():
        return str(figure.get_label())
    panels = [one for one in figure.axes if one.get_visible() and one.get_label() != "<colorbar>"]
    page = _Page(panels, {})
    for axes in panels:
        for line, name in _lines(axes):
            if name:
                page.looks.setdefault(_look(line), name)
    told, before = "", ""
    for number, axes in enumerate(panels):
        about = " by ".join(filter(None, (_label(axes, page, "y"), _label(axes, page, "x"))))
        text = _panel(axes, page, about if about != before else "")
        if len(told) + len(text) > _LONGEST:
            return f"{told}And {len(panels) - number} more panels."
        told += f"{text} " if text else ""
        before = about
    return told.strip()


def _panel(axes: Axes, page: _Page, about: str) -> str:
    title = axes.get_title("left") or axes.get_title("center") or axes.get_title("right")
    named = _by_name(axes, page) or _cells(axes)
    if not named:
        groups: dict[str, list[_Drawn]] = {}
        for one in _drawn(axes, page):
            groups.setdefault(one.name, []).append(one)
        rest = groups.pop("", [])
        named = [
            _course(own[0], axes)
            if len(own) == 1
            else f"{name}, {'; '.join(_together(own, axes)) or 'nothing'}"
            for name, own in groups.items()
        ]
        if not named or len(rest) > 1:
            named += _together(rest, axes)
    if len(named) > _MOST:
        named = [*named[:_MOST], f"and {len(named) - _MOST} more"]
    if not named:
        return ""
    return ": ".join(filter(None, (_one_line(title), about, "; ".join(named)))) + "."


def _sharing(axes: Axes, page: _Page, side: str) -> list[Axes]:
    """A panel, and those that have an axis in common with it."""
    shared = getattr(axes, f"get_shared_{side}_axes")()
    return [axes, *(one for one in page.panels if one is not axes and shared.joined(axes, one))]


def _label(axes: Axes, page: _Page, side: str) -> str:
    """An axis' label; of panels that share one, the label that one of them has."""
    labels = (getattr(one, f"get_{side}label")() for one in _sharing(axes, page, side))
    return _one_line(next(filter(None, labels), ""))


def _lines(axes: Axes) -> Iterator[tuple[Line2D, str]]:
    """Lines and dots with their names, or "": but for those over a whole panel, and the arms of
    errors.
    """
    arms: set[int] = set()
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            line, caps, _ = container.lines
            arms |= {id(part) for part in (line, *caps)}
            if line is not None:
                yield line, _name(container)
    for line in axes.lines:
        of_data = line.get_transform().contains_branch_seperately(axes.transData)
        if id(line) not in arms and all(of_data):
            yield line, _name(line)


def _look(line: Line2D) -> _Look:
    return str(line.get_color()), str(line.get_marker()), str(line.get_linestyle())


def _drawn(axes: Axes, page: _Page) -> Iterator[_Drawn]:
    """All that has numbers."""
    for container in axes.containers:
        name = _name(container)
        if isinstance(container, BarContainer):
            lying = container.orientation == "horizontal"
            boxes = [bar.get_bbox() for bar in container.patches]
            middles = np.array([(b.y0 + b.y1 if lying else b.x0 + b.x1) / 2 for b in boxes])
            lengths = np.array([b.width if lying else b.height for b in boxes])
            yield _Drawn(name, lengths, middles) if lying else _Drawn(name, middles, lengths)
    for line, name in _lines(axes):
        x, y = _numbers(line.get_xdata()), _numbers(line.get_ydata())
        if len(x) == len(y) and len(x):
            yield _Drawn(name or page.looks.get(_look(line), ""), x, y)
    for patch in axes.patches:
        if isinstance(patch, StepPatch):
            values, edges, _ = patch.get_data()
            middles = (np.asarray(edges)[1:] + np.asarray(edges)[:-1]) / 2
            yield _Drawn(_name(patch), middles, _numbers(values))


def _by_name(axes: Axes, page: _Page) -> list[str]:
    """What is drawn at names along an axis, such as modes: the number of each."""
    if axes.name == "polar":
        return []
    for side, other in (("y", "x"), ("x", "y")):
        names = _names(axes, page, side)
        along = axes.xaxis if side == "y" else axes.yaxis
        found: dict[str, list[str]] = {}
        for one in _drawn(axes, page):
            at, values = getattr(one, side), getattr(one, other)
            # Several points at a name are an interval's ends, or a cloud around what comes last.
            if len(at) > 1 and np.ptp(at) < 0.5:
                continue
            for place, value in zip(at, values, strict=True):
                name = names.get(round(place)) if math.isfinite(place) else None
                if name is not None and math.isfinite(value):
                    text = f"{one.name} {_said(value, along)}".strip()
                    found[name] = [*found.get(name, []), text] if one.name else [text]
        if found:
            return [f"{name} {', '.join(texts)}" for name, texts in found.items()]
    return []


def _names(axes: Axes, page: _Page, side: str) -> dict[int, str]:
    """The words along an axis by their places; nothing where there are numbers."""
    for one in _sharing(axes, page, side):
        axis: Axis = getattr(one, f"{side}axis")
        if not isinstance(axis.get_major_locator(), FixedLocator):
            continue
        labels = [_one_line(label.get_text()) for label in axis.get_ticklabels()]
        if any(labels) and all(label[0].isalpha() for label in labels if label):
            return dict(zip((round(at) for at in axis.get_ticklocs()), labels, strict=True))
    return {}


def _cells(axes: Axes) -> list[str]:
    """The range of a map's numbers."""
    meshes = [c for c in axes.collections if type(c).__name__ == "QuadMesh"]
    arrays: list[Any] = [part.get_array() for part in (*meshes, *axes.images)]
    values: list[np.ndarray] = [_numbers(array) for array in arrays if array is not None]
    if not values or np.isnan(values[0]).all():
        return []
    low, high = float(np.nanmin(values[0])), float(np.nanmax(values[0]))
    return [f"{np.isfinite(values[0]).sum()} cells from {_plain(low)} to {_plain(high)}"]


def _course(one: _Drawn, axes: Axes) -> str:
    """A named thing's numbers: where it begins, ends, and lies highest or lowest between."""
    known = np.isfinite(one.x) & np.isfinite(one.y)
    x, y = one.x[known], one.y[known]
    if not len(x):
        return f"{one.name}, nothing"
    if axes.name == "polar":
        return f"{one.name} {_between(*(_said(value, axes.yaxis) for value in _ends(y)))}"
    if len(x) == 1:
        return f"{one.name} at {_said(x[0], axes.xaxis)}, {_said(y[0], axes.yaxis)}"
    if (np.diff(x) < 0).any() and (np.diff(x) > 0).any():
        return f"{one.name}, {_cloud(x, y, axes)}"
    first, last = _said(y[0], axes.yaxis), _said(y[-1], axes.yaxis)
    text = f"{one.name} from {first} to {last}"
    tall = np.ptp(y)
    for word, at in (("highest", int(y.argmax())), ("lowest", int(y.argmin()))):
        if min(abs(y[at] - y[0]), abs(y[at] - y[-1])) > 0.1 * tall:
            text += f", {word} {_said(y[at], axes.yaxis)} at {_said(x[at], axes.xaxis)}"
    return text


def _together(many: list[_Drawn], axes: Axes) -> list[str]:
    """What has no name of its own: how many, and where their ends lie."""
    known = [one for one in many if np.isfinite(one.y).any()]
    if not known:
        return []
    if len(known) == 1 and len(known[0].x) > 2:
        return [_course(known[0], axes).strip()]
    if all(len(one.y) == 1 for one in known):
        x, y = (np.concatenate([getattr(one, side) for one in known]) for side in "xy")
        return [_cloud(x, y, axes)]
    begins, ends = ([float(one.y[np.isfinite(one.y)][place]) for one in known] for place in (0, -1))
    said = [_said(value, axes.yaxis) for value in (*_ends(begins), *_ends(ends))]
    return [f"{len(known)} lines from {_between(*said[:2])} to {_between(*said[2:])}"]


def _cloud(x: np.ndarray, y: np.ndarray, axes: Axes) -> str:
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return "nothing"
    across = _between(*(_said(value, axes.xaxis) for value in _ends(x[known])))
    up = _between(*(_said(value, axes.yaxis) for value in _ends(y[known])))
    return f"{known.sum()} points, across {across}, up {up}"


def _ends(values: Any) -> tuple[float, float]:
    return float(np.min(values)), float(np.max(values))


def _between(low: str, high: str) -> str:
    return low if low == high else f"{low}…{high}"


def _said(value: float, axis: Axis) -> str:
    formatter = axis.get_major_formatter()
    if isinstance(formatter, PercentFormatter):
        return f"{_plain(100 * value / formatter.xmax)}%"
    return _plain(value)


def _plain(value: float) -> str:
    """Three significant digits: 1,230 and −0.0412."""
    if value and abs(value) >= 100:
        return f"{value:,.0f}".replace("-", "−")
    return f"{0 if abs(value) < 1e-9 else value:.3g}".replace("-", "−")


def _numbers(values: Any) -> np.ndarray:
    return np.atleast_1d(np.ma.filled(np.ma.asarray(values, float), np.nan))


def _name(artist: Any) -> str:
    name = str(artist.get_label() or "")
    return "" if name.startswith("_") else _one_line(name)


def _one_line(text: str) -> str:
    return " ".join(text.split())
