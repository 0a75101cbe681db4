import numpy as np
import pytest

from epistemic.results import Four, Ratio
from epistemic.scoring import metrics
from epistemic.scoring.thesis import conditions, is_ideal, load_thesis, standing
from evidence import rule
from evidence.measurement import Measurement

THESIS = load_thesis()


def gap(value, low, high, n=50):
    return Measurement(value, low, high, n, "subject", "paired cluster bootstrap 95%")


def share(value):
    return Ratio(value, value, value, 50, "subject", "by hand", 0, 1)


def verdict(far, la, errors=0.0):
    rates = {THESIS.licensed: share(errors), THESIS.unlicensed: share(0.0)}
    gaps = Four(AP=gap(0, 0, 0), CVRR=gap(0, 0, 0), FAR_NE=gap(*far), LA=gap(*la))
    return rule(THESIS.statement, conditions(THESIS, gaps, rates))


@pytest.mark.parametrize(
    "far, la, expected, decided_by",
    [
        ((-0.9, -0.95, -0.8), (0, 0, 0), "supported", "FAR-NE of"),
        ((-0.9, -0.95, -0.8), (-0.04, -0.05, -0.03), "supported", "FAR-NE of"),
        ((-0.9, -0.95, -0.8), (-0.04, -0.051, -0.03), "inconclusive", "LA of"),
        # All of the interval at the bound or below, its upper end on it: not lost at 95%.
        ((-0.9, -0.95, -0.8), (-0.1, -0.15, -0.05), "inconclusive", "LA of"),
        ((-0.9, -0.95, -0.8), (-0.1, -0.15, -0.051), "falsified", "LA of"),
        ((-0.01, -0.05, 0.03), (0, 0, 0), "inconclusive", "FAR-NE of"),
        ((-0.01, -0.05, 0.0), (0, 0, 0), "inconclusive", "FAR-NE of"),
        ((0.0, 0.0, 0.0), (0, 0, 0), "falsified", "FAR-NE of"),
        ((0.2, 0.1, 0.3), (-0.2, -0.3, -0.1), "falsified", "FAR-NE of"),
        ((None, None, None), (0, 0, 0), "inconclusive", "FAR-NE of"),
    ],
)
def test_the_verdict_goes_every_way(far, la, expected, decided_by):
    found = verdict(far, la)
    assert found.verdict == expected
    assert decided_by in found.because
    # Each supporting condition is the opposite of a falsifying one.
    states = {(c.role, c.name): c.state for c in found.conditions}
    opposite = {"met": "refuted", "refuted": "met", "undetermined": "undetermined"}
    for metric in ("FAR-NE", "LA"):
        name = f"{metric} of {THESIS.licensed} minus {THESIS.unlicensed}"
        assert states["supports", name] == opposite[states["falsifies", name]]


def test_failed_calls_leave_no_verdict():
    found = verdict((-0.9, -0.95, -0.8), (0, 0, 0), errors=0.02)
    assert found.verdict is None
    assert "calls" in found.because and "0.02" in found.because
    assert verdict((-0.9, -0.95, -0.8), (0, 0, 0), errors=0.01).verdict == "supported"


@pytest.mark.parametrize("subjects, expected", [(2, None), (3, "supported")])
def test_three_subjects_at_least(subjects, expected):
    found = verdict((-0.9, -0.95, -0.8), (0, 0, 0, subjects))
    assert found.verdict == expected


def test_without_a_model_there_is_no_verdict():
    found = rule(THESIS.statement, conditions(THESIS, None, {}))
    assert found.verdict is None
    assert "no language model" in found.because


def measured(ap, cvrr, far, la):
    names = ("AP", "CVRR", "FAR_NE", "LA")
    shares = map(share, (ap, cvrr, far, la))
    return Four(**dict(zip(names, shares, strict=True)))


@pytest.mark.parametrize(
    "values, errors, expected",
    [
        ((1, 1, 0, 1), 0.0, True),
        ((0.91, 0.91, 0.09, 0.91), 0.01, True),
        ((0.91, 0.91, 0.09, 0.91), 0.011, False),
        ((0.9, 1, 0, 1), 0.0, False),
        ((1, 1, 0.1, 1), 0.0, False),
        ((None, 1, 0, 1), 0.0, False),
        ((1, 1, 0, 1), None, False),
    ],
)
def test_ideal_thresholds(values, errors, expected):
    assert is_ideal(THESIS, measured(*values), errors) is expected


@pytest.mark.parametrize("answer", range(3))
def test_no_constant_answer_is_ideal_under_the_seed_convention(answer):
    table = np.zeros((3, 5), int)
    table[:, answer] = 200
    values = {
        name: numerator / denominator if denominator else None
        for name, (numerator, denominator) in metrics.seed_convention(table).items()
    }
    four = Four(**{name: share(value) for name, value in values.items()})
    assert not is_ideal(THESIS, four, 0.0)
    if answer == metrics.NO:
        # Every NO to a contradictory claim is a right rejection, and nothing else is abstained on:
        # two of the four metrics are perfect, and only the other two tell.
        assert [values[name] for name in ("AP", "CVRR", "FAR_NE", "LA")] == [1, 1, 0.5, 0]


@pytest.mark.parametrize(
    ("low", "high", "stands"),
    [
        (0.55, 0.65, "inside"),
        (0.5, 0.7, "inside"),
        (0.2, 0.49, "below"),
        (0.71, 0.9, "above"),
        (0.4, 0.6, "undetermined"),
        (0.2, 0.9, "undetermined"),
        (None, None, "undetermined"),
    ],
)
def test_where_an_interval_lies_beside_an_expected_range(low, high, stands):
    assert standing(Measurement(0.5, low, high, 9, "subject", "by hand"), 0.5, 0.7) == stands
