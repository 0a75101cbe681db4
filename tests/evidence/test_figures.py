import itertools
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from evidence import figures


@pytest.fixture
def figure():
    with figures.style():
        figure, axes = figures.canvas(height=2.0)
        x = np.arange(10)
        axes.plot(x, x**2, label="squares", **figures.line(0))
        axes.errorbar([1, 2], [3, 4], yerr=1, **figures.point(1))
        figures.band(axes, x, x**2 - 1, [None, *x[1:] ** 2 + 1], 0)
        axes.set_xlabel("steps")
        axes.legend()
    return figure


def test_files_are_written_and_equal_figures_give_equal_bytes(figure, tmp_path):
    vector, pixels = figures.save(figure, tmp_path / "new" / "folder", "curve")
    assert pixels.read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(vector)
    first = vector.read_bytes()
    figures.save(figure, tmp_path / "new" / "folder", "curve")
    assert vector.read_bytes() == first


def test_a_file_keeps_its_glyphs_and_colours_wherever_it_is_shown(figure, tmp_path):
    vector, _ = figures.save(figure, tmp_path, "curve")
    text = vector.read_text()
    assert "<text" not in text and figures.INK in text
    assert "currentColor" not in text and "var(" not in text


def test_an_inline_figure_scales_keeps_its_text_and_takes_the_pages_theme(figure):
    inline = figures.svg(figure)
    root = ElementTree.fromstring(inline)
    assert root.get("width") is None and root.get("height") is None and root.get("viewBox")
    assert ">steps</text>" in inline
    assert "currentColor" in inline and "var(--rule" in inline
    assert "<style" not in inline  # it would apply to the whole page


def test_two_figures_on_one_page_share_no_identifier(figure):
    with figures.style():
        other, axes = figures.canvas()
        axes.plot([1, 2], [2, 1])
    first, second = figures.svg(figure), figures.svg(other)
    found = [set(re.findall(r'\bid="([^"]+)"', text)) for text in (first, second)]
    assert found[0] and not found[0] & found[1]
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", first))
    assert used and used <= found[0]


def test_categories_differ_without_colour():
    def grey(look):
        return float(np.dot(to_rgb(look["color"]), (0.299, 0.587, 0.114)))

    for a, b in itertools.combinations(range(6), 2):
        first, second = figures.line(a), figures.line(b)
        same_pattern = first["linestyle"] == second["linestyle"]
        assert not same_pattern or abs(grey(first) - grey(second)) > 0.2
        assert figures.point(a)["marker"] != figures.point(b)["marker"]


def test_the_style_ends_with_its_block():
    before = matplotlib.rcParams["axes.spines.top"]
    with figures.style():
        assert matplotlib.rcParams["axes.spines.top"] is False
    assert matplotlib.rcParams["axes.spines.top"] == before


def test_no_two_of_thirty_categories_look_alike():
    lines = {(look["color"], str(look["linestyle"])) for look in map(figures.line, range(30))}
    points = {(look["color"], look["marker"]) for look in map(figures.point, range(30))}
    assert len(lines) == len(points) == 30


def test_a_legend_below_names_everything_once():
    figure, axes = figures.canvas(1, 2)
    axes[0].plot([0, 1], label="one", **figures.line(0))
    axes[1].plot([0, 1], label="one", **figures.line(0))
    axes[1].plot([1, 0], label="two", **figures.line(1))
    figures.legend_below(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]


def test_a_figure_is_drawn_once_for_each_file(figure, tmp_path):
    drawn, draw = [], type(figure).draw
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(figure), "draw", lambda *a: drawn.append(1) or draw(*a))
        figures.save(figure, tmp_path, "curve")
        figures.svg(figure)
    assert len(drawn) == 3


def test_what_is_saved_has_room_for_its_labels(tmp_path):
    figure, axes = figures.canvas(1, 2, width=5)
    for each in axes:
        each.set_yticks([0, 1], ["nothing at all", "everything there is"])
        each.set_xlabel("of what\nthere\nis")
    figures.save(figure, tmp_path, "labelled")
    left, right = (each.get_tightbbox() for each in axes)
    assert left.x1 <= right.x0
    inside = figure.bbox.padded(1)
    assert inside.x0 <= left.x0 and right.x1 <= inside.x1 and inside.y0 <= left.y0
