"""The page, its twin and the terminal's table, from results made up for the purpose."""

import io
import json
import re
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError
from rich.console import Console

import evidence
from evidence import pages
from evidence.runtime import files
from goodharts_jax import assessment, figures, report, thesis
from goodharts_jax.results import Results

KEPT = Path(__file__).parents[2] / "benchmarks" / "results"
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
    "reward_correlation",
    "directions",
}
ROLES = {
    "requires": "needed for a verdict",
    "supports": "would support the thesis",
    "falsifies": "would falsify it",
}
SHORT = {"performance", "survival", "consumption", "learning"}


@pytest.fixture(scope="module")
def folder(results, replay, tmp_path_factory):
    """A results folder with its full page."""
    folder = tmp_path_factory.mktemp("run")
    results.save(folder)
    files.write_json(folder / "replay.json", replay)
    report.write(folder)
    return folder


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
    modes = results.modes
    efficiency = modes["proxy"].intervals.overall_efficiency
    printed = f"{100 * efficiency.value:.1f}% [{100 * efficiency.low:.1f}"
    assert printed in text
    assert "Supported" in text and results.thesis.statement in text
    for condition in results.thesis.conditions:
        assert f"{condition.name} {condition.wanted}" in text and condition.state in text
    for name in modes:
        assert name.replace("_", " ") in text
    for heading in ("Survival", "Under growing pressure", "Where the thesis flips", "Methods"):
        assert heading in text
    assert "43.9%" in text and "99.60" in text  # the published table
    assert "torus of 100 by 100 cells" in text and "42, 43, 44" in text
    # Seed 43 is not level, by construction.
    told = "proxy, 1 of 3 not level after 1,000,000 steps"
    assert f"had not levelled off: ground truth, {told.partition(', ')[2]}; " in text
    assert "(and on, up to 4,000,000, until" in text
    assert told in text and "3 × 1 M" in re.sub(r"<[^>]+>", "", text)


@pytest.mark.parametrize("file", ["report.html", "report.md"])
def test_second_opinions_spread_plan_and_logrank_are_told(folder, results, file):
    text = re.sub(r"<[^>]+>", "", (folder / file).read_text())
    proxy = results.modes["proxy"]
    other = proxy.other_intervals.deaths_per_1k_steps
    assert "BCa bootstrap" in other.method and other.method in text
    assert pages.number(other) in text
    spread = proxy.spread["overall_efficiency"]
    assert pages.percent(spread.measured) in text
    for part in ("between_runs", "within_runs"):
        assert pages.percent(getattr(spread, part)) in text
    plan = thesis.next_study(results.modes, thesis.load_thesis())
    for row in plan.gaps:
        told = f"a gap of {100 * row.gap:.0f} points with power 0.8 needs {row.runs} runs"
        assert told in text
    assert "−321.5" in text and "no p-value is given" in text
    assert "gpu:0, cpu:0 differ by 2.5e-06 at most, within the tolerance of 1e-04" in text


def test_sections_without_data_are_left_out(results, smaller):
    one = smaller(results, "ground_truth_aliased")
    drawn = figures.draw(one)
    page = report.to_html(one, drawn)
    assert "<h2>Results</h2>" in page
    for heading in ("See it", "Under growing", "Where the thesis", "Pairwise", "The published"):
        assert f"<h2>{heading}" not in page
    assert "replay" not in page and "random walk" not in page
    twin = report.to_markdown(one, drawn)
    assert "## Results" in twin and "## Pairwise" not in twin


def test_a_short_page_has_what_one_looks_at_first(results, replay):
    drawn = figures.draw(results, full=False)
    assert set(drawn) == SHORT
    page = report.to_html(results, drawn, replay, full=False)
    assert 'id="replay-data"' in page and page.count("<svg") == len(SHORT)
    assert "Pairwise tests" not in page and "Selectivity</th>" not in page


def test_a_phase_diagram_alone_makes_a_page(results, smaller, change):
    alone = smaller(results, "random_walk")
    configuration = alone.manifest.configuration | {
        "study": {"kind": "phase_diagram", "noise": 0.25}
    }
    alone = change(
        alone,
        phase_diagram=results.phase_diagram,
        manifest=change(alone.manifest, configuration=configuration),
    )
    drawn = figures.draw(alone)
    assert set(drawn) == {"performance", "consumption", "survival", "efficiency_distribution"} | {
        "causes_of_death",
        "phase_diagram",
        "phase_pressure",
        "reward_correlation",
    }
    page = report.to_html(alone, drawn)
    assert "noise of standard deviation 0.250" in page and "Training and verification" not in page


def test_one_run_and_undefined_numbers_make_a_page(results, smaller, change):
    one = smaller(results, "avoider", "proxy")
    modes = {
        name: change(mode, runs=mode.runs[:1], intervals=assessment.intervals(mode.runs[:1]))
        for name, mode in one.modes.items()
    }
    one = change(one, modes=modes)
    page = report.to_html(one, figures.draw(one))
    row = page[page.index('"></span>avoider') :]
    assert row[: row.index("</tr>")].count("<td>–</td>") == 2  # efficiency and selectivity
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL).lower()


def test_hostile_names_stay_text(results, replay, smaller, change):
    evil = "</script><script>alert(1)</script>"
    one = smaller(results, "proxy")
    one = change(one, modes={**one.modes, evil: one.modes["proxy"]})
    recorded = {**replay, "modes": {evil: replay["modes"]["proxy"]}}
    page = report.to_html(one, {}, recorded)
    assert "<script>alert" not in page
    data = re.search(r'id="replay-data">(.*?)</script>', page, re.DOTALL)
    assert data and list(json.loads(data[1])["modes"]) == [evil]


# ---- the verdict --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdict", "word", "style"),
    [
        ("supported", "Supported", "supported"),
        ("not as stated", "Not as stated", "not-as-stated"),
        ("falsified", "Falsified", "falsified"),
        ("inconclusive", "Inconclusive", "inconclusive"),
        (None, "No verdict", "none"),
    ],
)
def test_every_verdict_is_told_with_the_state_of_each_condition(
    results, smaller, change, verdict, word, style
):
    states = ("met", "refuted", "undetermined")
    conditions = tuple(
        change(condition, state=states[i % 3])
        for i, condition in enumerate(results.thesis.conditions)
    )
    ruling = change(results.thesis, verdict=verdict, because="so it is", conditions=conditions)
    one = change(smaller(results, "proxy"), thesis=ruling)
    page, twin = report.to_html(one, {}), report.to_markdown(one, {})
    box = page[page.index('<div class="verdict') : page.index('<section id="results">')]
    assert box.startswith(f'<div class="verdict {style}">') and f">{word}</p>" in box
    assert f"> **{word}.** {ruling.statement}" in twin and "Decided by: so it is" in twin
    rows = re.findall(r"<tr><td.*?</tr>", box)
    told = [line for line in twin.splitlines() if re.search(r"\| (met|refuted|undet)", line)]
    assert len(rows) == len(told) == len(conditions) == 11
    for condition, row, line in zip(conditions, rows, told, strict=True):
        cells = (f"{condition.name} {condition.wanted}", ROLES[condition.role], condition.state)
        assert all(cell in row and cell in line for cell in cells)


# ---- results files ------------------------------------------------------------------------------


def test_a_results_file_that_lacks_a_number_is_refused(results, tmp_path):
    broken = files.plain(results)
    del broken["modes"]["proxy"]["runs"][0]["deaths_per_1k_steps"]
    files.write_json(tmp_path / "results.json", broken)
    with pytest.raises(ValueError, match=r"modes\.proxy\.runs\.0\.deaths_per_1k_steps"):
        report.write(tmp_path)


def test_results_are_read_back_as_they_were_written_and_obey_their_schema(results, tmp_path):
    results.save(tmp_path)
    written = json.loads((tmp_path / "results.json").read_text("utf-8"))
    jsonschema.validate(written, Results.model_json_schema())
    assert evidence.load(tmp_path) == results
    with pytest.raises(ValidationError):
        results.warnings = ()


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("goodhart", "not as stated"), ("published", "supported"), ("phase_diagram", None)],
)
def test_kept_results_are_ruled_as_their_runs_say(name, verdict):
    kept = evidence.load(KEPT / name)
    assert isinstance(kept, Results)
    ruling = kept.thesis
    assert (ruling and ruling.verdict) == verdict
    assert ruling is None or ruling == thesis.judge(kept.modes, thesis.load_thesis())


# ---- the terminal -------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 3])
def test_the_table_of_a_terminal_fits_80_columns_with_every_name_whole(results, change, runs):
    modes = {name: change(mode, runs=mode.runs[:runs]) for name, mode in results.modes.items()}
    modes["interestingness_seeker"] = modes["omniscient_seeker"]
    seeds = results.manifest.seeds[:runs]
    shown = change(results, modes=modes, manifest=change(results.manifest, seeds=seeds))
    console = Console(width=80, file=io.StringIO(), color_system=None)
    console.print(report.summary(shown))
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "…" not in console.file.getvalue()
    for name, mode in modes.items():
        (row,) = [line.split() for line in lines if line.startswith(f"{name} ")]
        assert len(row) == 8
        assert row[1] == pages.percent(mode.intervals.overall_efficiency.value)
    assert ("one run a row" in lines[-1]) == (runs == 1)
