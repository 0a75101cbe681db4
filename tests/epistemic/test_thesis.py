import numpy as np
import pytest

from epistemic.scoring import metrics
from epistemic.scoring.thesis import is_ideal, judge, load_thesis
from evidence.measurement import Measurement

THESIS = load_thesis()


def gap(value, low, high):
    return Measurement(value, low, high, 50, "subject", "paired cluster bootstrap 95%")


def verdict(far, la, errors=0.0):
    rates = {THESIS.licensed: errors, THESIS.unlicensed: 0.0}
    return judge(THESIS, {"FAR_NE": gap(*far), "LA": gap(*la)}, rates)


@pytest.mark.parametrize(
    "far, la, expected, decided_by",
    [
        ((-0.9, -0.95, -0.8), (0, 0, 0), "supported", "LA of"),
        ((-0.9, -0.95, -0.8), (-0.04, -0.05, -0.03), "supported", "LA of"),
        ((-0.9, -0.95, -0.8), (-0.04, -0.051, -0.03), "inconclusive", "LA of"),
        ((-0.9, -0.95, -0.8), (-0.1, -0.15, -0.051), "falsified", "LA of"),
        ((-0.01, -0.05, 0.03), (0, 0, 0), "inconclusive", "FAR-NE of"),
        ((0.0, 0.0, 0.0), (0, 0, 0), "falsified", "FAR-NE of"),
        ((0.2, 0.1, 0.3), (-0.2, -0.3, -0.1), "falsified", "FAR-NE of"),
        ((None, None, None), (0, 0, 0), "inconclusive", "FAR-NE of"),
    ],
)
def test_the_verdict_goes_every_way(far, la, expected, decided_by):
    found = verdict(far, la)
    assert found["verdict"] == expected
    assert found["deciding_condition"].startswith(decided_by)


def test_failed_calls_leave_it_open():
    found = verdict((-0.9, -0.95, -0.8), (0, 0, 0), errors=0.02)
    assert found["verdict"] == "inconclusive"
    assert "calls" in found["deciding_condition"]


def test_without_a_model_it_is_inconclusive():
    found = judge(THESIS, None, {})
    assert found["verdict"] == "inconclusive"
    assert "no language model" in found["deciding_condition"]


def measured(ap, cvrr, far, la):
    names = ("AP", "CVRR", "FAR_NE", "LA")
    return {n: {"value": v} for n, v in zip(names, (ap, cvrr, far, la), strict=True)}


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
        name: {"value": numerator / denominator if denominator else None}
        for name, (numerator, denominator) in metrics.seed(table).items()
    }
    assert not is_ideal(THESIS, values, 0.0)
    if answer == metrics.NO:
        # Every NO to a contradictory claim is a right rejection, and nothing else is abstained on:
        # two of the four metrics are perfect, and only the other two tell.
        assert [values[name]["value"] for name in ("AP", "CVRR", "FAR_NE", "LA")] == [1, 1, 0.5, 0]
