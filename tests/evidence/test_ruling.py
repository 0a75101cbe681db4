"""Verdicts from planted conditions."""

import pytest

from evidence import Condition, Measurement, rule
from evidence.ruling import enough_replicates, state_of


def condition(role, state, name="gap"):
    return Condition(name=name, role=role, wanted="above 0.5", state=state)


def measured(low, high):
    return Measurement((low + high) / 2, low, high, 5, "run", "t 95%")


def test_a_falsifying_condition_that_is_met_comes_before_all_that_supports():
    told = rule("s", [condition("supports", "met"), condition("falsifies", "met", "ratio")])
    assert told.verdict == "falsified" and "ratio" in told.because


def test_a_refuted_supporting_condition_is_named_and_is_not_lack_of_data():
    told = rule(
        "s", [condition("supports", "undetermined", "first"), condition("supports", "refuted")]
    )
    assert told.verdict == "not as stated" and "gap" in told.because


@pytest.mark.parametrize("state", ["refuted", "undetermined"])
def test_no_verdict_where_a_required_condition_is_missing(state):
    conditions = [condition("falsifies", "met"), condition("requires", state, "runs")]
    told = rule("s", conditions)
    assert told.verdict is None and "runs" in told.because and str(told).startswith("no verdict")
    assert told.conditions == tuple(conditions)


def test_supported_needs_all_and_inconclusive_is_the_rest():
    met, unclear = condition("supports", "met"), condition("supports", "undetermined", "far")
    assert rule("s", [met, condition("falsifies", "refuted")]).verdict == "supported"
    told = rule("s", [met, unclear])
    assert told.verdict == "inconclusive" and "far" in told.because
    assert rule("s", [condition("falsifies", "refuted")]).verdict == "inconclusive"


def test_a_verdict_rests_on_three_replicates_at_least():
    assert enough_replicates(2, "run").state == "refuted"
    assert enough_replicates(3, "run").state == "met"
    assert "there are 2" in str(enough_replicates(2, "run"))


def test_where_an_interval_must_lie():
    assert state_of(measured(0.6, 0.8), above=0.5) == "met"
    assert state_of(measured(0.4, 0.8), above=0.5) == "undetermined"
    assert state_of(measured(0.3, 0.5), above=0.5) == "refuted"
    assert state_of(measured(-0.2, -0.1), below=0) == "met"
    assert state_of(measured(0.0, 0.1), below=0) == "refuted"
    assert state_of(measured(0.9, 1.1), above=0.8, below=1.25) == "met"
    assert state_of(measured(0.7, 1.1), above=0.8, below=1.25) == "undetermined"
    assert state_of(measured(1.3, 1.4), above=0.8, below=1.25) == "refuted"
    assert state_of(Measurement(0.9, None, None, 1, "run", "one run"), above=0.5) == "undetermined"


def test_a_condition_tells_what_was_measured():
    told = Condition(
        name="gap",
        role="supports",
        wanted="above 0.5",
        state="met",
        measured={"gap": measured(0.6, 0.8)},
    )
    assert str(told) == "gap above 0.5: 0.7 [0.6, 0.8]"
