"""Results as objects: those that are kept, the page made of them, and the terminal's table."""

import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console

import evidence
from kubku import assessment, figures, report, thesis
from kubku.results import Results

KEPT = Path(__file__).parents[2] / "benchmarks/results"
NAMES = ("kubku", "kubku_ten")


@pytest.mark.parametrize("name", NAMES)
def test_kept_results_are_read_and_judged_as_they_say(name):
    found = evidence.load(KEPT / name)
    assert isinstance(found, Results) and found.thesis is not None
    declared = thesis.declared()
    if (found.thesis.statement, *found.manifest.seeds) != (declared.statement, declared.seed):
        pytest.skip("another thesis was judged when this was made, or this was its pilot")
    assert assessment.ruling(declared, found.comparisons, found.families) == found.thesis


@pytest.mark.parametrize("name", NAMES)
def test_what_is_read_is_what_would_be_written(name, tmp_path):
    """To the last digit; but for fields that older files lack, which are null or as by default."""
    new = {"frontier", "unlearnt", "beside", "learner", "kept", "kept_by_opponent"}
    new |= {"opponent_learnt", "thresholds", "reached"}

    def given(node):
        if isinstance(node, dict):
            there = {key: entry for key, entry in node.items() if entry is not None}
            return {key: given(entry) for key, entry in there.items() if key not in new}
        return [given(entry) for entry in node] if isinstance(node, list) else node

    kept = json.loads((KEPT / name / "results.json").read_text())
    Results.load(KEPT / name).save(tmp_path)
    written = json.loads((tmp_path / "results.json").read_text())
    written["manifest"] = kept["manifest"] | {
        key: entry for key, entry in written["manifest"].items() if key in kept["manifest"]
    }
    assert given(written) == given(kept)


def test_figures_leave_out_a_family_that_only_controls_can_handle():
    """As a network on frames alone does, asked about every family."""
    results = Results.load(KEPT / "kubku")
    controls = figures.in_group("control")
    stories = results.families["stories"]
    few = {name: one for name, one in stories.learners.items() if name in controls}
    families = {
        "stories": stories.model_copy(update={"learners": few, "streaming": {}}),
        "frames": results.families["frames"],
    }
    drawn = figures.draw(results.model_copy(update={"families": families}))
    assert len(drawn["halos"].axes) == 1 and drawn["histograms"] is not None
    alone = {"stories": families["stories"]}
    drawn = figures.draw(results.model_copy(update={"families": alone}))
    assert drawn["halos"] is drawn["histograms"] is None


def test_a_page_is_made_from_the_results_file_alone(tmp_path):
    shutil.copy(KEPT / "kubku_ten/results.json", tmp_path)
    page = report.write(tmp_path).read_text()
    assert "transformer" in page and "<svg" in page and "Inconclusive" in page


@pytest.mark.parametrize("name", NAMES)
def test_the_summary_fits_a_terminal_of_80_columns(name):
    results = Results.load(KEPT / name)
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(report.summary(results))
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 80 and "…" not in text
    for family, found in results.families.items():
        assert family in text
        assert sum(learner in text for learner in found.learners) >= 1


def test_a_file_that_is_none_of_ours_names_the_place(tmp_path):
    kept = json.loads((KEPT / "kubku_ten/results.json").read_text())
    kept["families"]["stories"]["learners"]["mlp"]["best"] = 3
    (tmp_path / "results.json").write_text(json.dumps(kept))
    with pytest.raises(ValueError, match=r"families\.stories\.learners\.mlp\.best"):
        evidence.load(tmp_path)
