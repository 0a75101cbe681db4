import copy
import importlib.resources
import json
import re
from itertools import pairwise

import numpy as np
import pytest

from evidence.runtime import files
from goodharts_jax import report, thesis, world

SCHEMA = json.loads(
    importlib.resources.files("goodharts_jax").joinpath("results.schema.json").read_text()
)
FULL = {
    "performance",
    "survival",
    "consumption",
    "learning",
    "efficiency_distribution",
    "causes_of_death",
    "goodhart_curves",
    "phase_diagram",
    "phase_pressure",
    "pay_correlation",
    "directions",
}
SHORT = {"performance", "survival", "consumption", "learning"}


@pytest.fixture(scope="module")
def folder(results, replay, tmp_path_factory):
    """A results folder with its full page."""
    folder = tmp_path_factory.mktemp("run")
    files.write_json(folder / "results.json", results, SCHEMA)
    files.write_json(folder / "replay.json", replay)
    report.write(folder)
    return folder


def smaller(results, *names):
    """Results of these modes alone, with what every run writes and nothing more."""
    kept = {key: results[key] for key in ("manifest", "modes")}
    kept["modes"] = {name: results["modes"][name] for name in names}
    return copy.deepcopy(kept)


# ---- figures -------------------------------------------------------------------------------------


def test_every_figure_is_drawn_where_the_results_have_its_data(results):
    assert set(report.draw(results)) == FULL
    bare = smaller(results, "random_walk")
    for run in bare["modes"]["random_walk"]["runs"]:
        for key in ("survival", "efficiency_histogram", "deaths_by_poison", "deaths_by_hunger"):
            del run[key]
    assert set(report.draw(bare)) == {"performance", "consumption"}


def test_survival_curves_hold_each_step_until_the_next_death(results):
    one = smaller(results, "proxy")
    one["manifest"]["survival_horizon"] = 8
    # Of four lives one ends at 2, two at 5; the last was followed to 6.
    curve = {"ages": [0, 2, 5, 6], "survival": [1.0, 0.75, 0.25, 0.25]}
    one["modes"]["proxy"]["runs"] = [{**one["modes"]["proxy"]["runs"][0], "survival": curve}]
    (line,) = report.survival(one).axes[0].lines
    drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert [drawn[age] for age in (1, 2, 3, 4, 5, 6)] == [1.0, 0.75, 0.75, 0.75, 0.25, 0.25]
    assert np.isnan(drawn[7]) and np.isnan(drawn[8])


def test_the_phase_diagram_puts_each_cell_in_its_place(results):
    figure = report.phase_diagram(results)
    axes = figure.axes[0]
    cells = [cell for cell in results["phase_diagram"] if cell["steps"] == 1_000_000]
    pays = sorted({cell["poison_pay"] for cell in cells})
    distances = sorted({cell["distance"] for cell in cells})
    (mesh,) = axes.collections
    values = mesh.get_array().reshape(len(distances), len(pays))
    for cell in cells:
        place = distances.index(cell["distance"]), pays.index(cell["poison_pay"])
        assert values[place] == cell["overall_efficiency"]["value"]
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()][:2] == ["−2", "−1"]


def test_a_phase_diagram_alone_makes_a_page(results):
    alone = smaller(results, "random_walk")
    alone["phase_diagram"] = results["phase_diagram"]
    study = {"kind": "phase_diagram", "noise": 0.25}
    alone["manifest"]["configuration"] |= {"study": study}
    drawn = report.draw(alone)
    assert set(drawn) == {"performance", "consumption", "survival", "efficiency_distribution"} | {
        "causes_of_death",
        "phase_diagram",
        "phase_pressure",
        "pay_correlation",
    }
    page = report.to_html(alone, drawn)
    assert "noise of standard deviation 0.250" in page and "Training and verification" not in page


def test_learning_curves_leave_out_updates_in_which_nothing_was_eaten(results):
    one = smaller(results, "proxy")
    history = one["modes"]["proxy"]["runs"][0]["training"]["history"]
    history["food"][:2], history["poison"][:2] = [0.0, 0.3], [0.0, 0.1]
    line = report.learning(one).axes[0].lines[0]
    assert np.isnan(line.get_ydata()[0]) and line.get_ydata()[1] == pytest.approx(0.75)


def test_directions_point_north_where_the_world_does(results):
    moved = copy.deepcopy(results)
    only_north = [[1.0 if move == (0, -1) else 0.0] * 5 for move in world.MOVES]
    moved["verification"] = {"proxy": moved["verification"]["proxy"]}
    moved["verification"]["proxy"]["directions"]["approach_food"] = only_north
    line = report.directions(moved).axes[0].lines[0]
    angles, heights = np.array(line.get_data())
    assert angles[heights == 1.0] == pytest.approx([np.pi / 2])
    assert all(0 < later - earlier < 1 for earlier, later in pairwise(angles[:-1]))


# ---- the page and its twin -----------------------------------------------------------------------


def test_a_folder_gets_its_page_its_twin_and_every_figure_twice(folder):
    written = {path.name for path in (folder / "figures").iterdir()}
    assert written == {f"{name}.{kind}" for name in FULL for kind in ("svg", "png")}
    twin = (folder / "report.md").read_text()
    assert set(re.findall(r"\]\(figures/(.*?)\.png\)", twin)) == FULL


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="output folder of a run"):
        report.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_page_stands_alone(folder):
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == len(FULL)
    assert not re.findall(r"<(?:script|img|iframe)[^>]+src=|@import|url\((?!#)", page)
    assert set(re.findall(r"<link[^>]+href=\"([^\"]+)\"", page)) == {"data:,"}
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_page_and_twin_tell_the_same(folder, results, file):
    text = re.sub(r"<[^>]+>", "", (folder / file).read_text())
    modes = results["modes"]
    efficiency = modes["proxy"]["intervals"]["overall_efficiency"]
    printed = f"{100 * efficiency['value']:.1f}% [{100 * efficiency['low']:.1f}"
    assert printed in text
    assert "Supported" in text and results["thesis"]["statement"] in text
    for row in results["thesis"]["conditions"]:
        assert row["condition"] in text
    for name in modes:
        assert name.replace("_", " ") in text
    for heading in ("Survival", "Under growing pressure", "Where the thesis flips", "Methods"):
        assert heading in text
    assert "43.9%" in text and "99.60" in text  # the published table
    assert "torus of 100 by 100 cells" in text and "42, 43, 44" in text
    assert "a run that had not levelled off" in text  # seed 43, by construction


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_second_opinions_spread_plan_and_logrank_are_told(folder, results, file):
    text = re.sub(r"<[^>]+>", "", (folder / file).read_text())
    proxy = results["modes"]["proxy"]
    other = proxy["other_intervals"]["deaths_per_1k_steps"]
    assert "BCa bootstrap" in other["method"] and other["method"] in text
    assert report.report.number(other) in text
    spread = proxy["spread"]["overall_efficiency"]
    assert report.report.percent(spread["measured"]) in text
    for part in ("between_runs", "within_runs"):
        assert report.report.percent(spread[part]) in text
    plan = thesis.plan(results["modes"], thesis.load_thesis())
    for row in plan["rows"]:
        told = f"a gap of {100 * row['gap']:.0f} points with power 0.8 needs {row['runs']} runs"
        assert told in text
    assert "−321.5" in text and "no p-value is given" in text
    assert "gpu:0, cpu:0 differ by 2.5e-06 at most, within the tolerance of 1e-04" in text


def test_sections_without_data_are_left_out(results):
    one = smaller(results, "ground_truth_aliased")
    drawn = report.draw(one)
    page = report.to_html(one, drawn)
    assert "<h2>Results</h2>" in page
    for heading in ("See it", "Under growing", "Where the thesis", "Pairwise", "The published"):
        assert f"<h2>{heading}" not in page
    assert "replay" not in page and "random walk" not in page
    twin = report.to_markdown(one, drawn)
    assert "## Results" in twin and "## Pairwise" not in twin


def test_a_short_page_has_what_one_looks_at_first(results, replay):
    drawn = report.draw(results, full=False)
    assert set(drawn) == SHORT
    page = report.to_html(results, drawn, replay, full=False)
    assert 'id="replay-data"' in page and page.count("<svg") == len(SHORT)
    assert "Pairwise tests" not in page and "Selectivity</th>" not in page


def test_one_run_and_undefined_numbers_make_a_page(results):
    one = smaller(results, "avoider", "proxy")
    for mode in one["modes"].values():
        mode["runs"] = mode["runs"][:1]
        mode["intervals"] = {}
    for run in one["modes"]["proxy"]["runs"]:
        run["training"]["converged"] = None
    page = report.to_html(one, report.draw(one))
    row = page[page.index('"></span>avoider') :]
    assert row[: row.index("</tr>")].count("<td>–</td>") == 2  # efficiency and selectivity
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()


def test_hostile_names_stay_text(results, replay):
    evil = "</script><script>alert(1)</script>"
    one = smaller(results, "proxy")
    one["modes"][evil] = copy.deepcopy(one["modes"]["proxy"])
    recorded = {**replay, "modes": {evil: replay["modes"]["proxy"]}}
    page = report.to_html(one, {}, recorded)
    assert "<script>alert" not in page
    data = re.search(r'id="replay-data">(.*?)</script>', page, re.DOTALL)
    assert data and list(json.loads(data[1])["modes"]) == [evil]


def test_a_results_file_that_breaks_the_schema_is_refused(results, tmp_path):
    broken = copy.deepcopy(results)
    del broken["modes"]["proxy"]["runs"][0]["deaths_per_1k_steps"]
    with pytest.raises(ValueError, match=r"modes\.proxy\.runs\[0\].*deaths_per_1k_steps"):
        files.write_json(tmp_path / "results.json", broken, SCHEMA)
