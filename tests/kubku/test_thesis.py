"""The verdict can go each way: replicates made so that each must come out."""

import numpy as np
import pytest

from evidence import stats
from evidence.measurement import Measurement
from kubku.thesis import Thesis, compare, declared, judge

THESIS = Thesis(
    statement="it is better",
    learner="own",
    base="grown",
    against=("a", "b"),
    families=("x", "y"),
    level=0.05,
)
FAMILIES = ("x", "y")
EVERYTHING = [(family, learner) for family in FAMILIES for learner in ("own", "a", "b")]


def replicates(ku, bku, seed, n=200, count=3):
    """`count` replicates of n samples around the two means."""
    generator = np.random.default_rng(seed)
    spread = np.array([0.1, 0.1])
    return [np.array([ku, bku]) + spread * generator.standard_normal((n, 2)) for _ in range(count)]


def outcomes(own, a, b, families=FAMILIES):
    named = {"own": own, "a": a, "b": b}
    return {
        family: {
            name: replicates(*means, seed=10 * i + j)
            for j, (name, means) in enumerate(named.items())
        }
        for i, family in enumerate(families)
    }


def has_learnt(found, low=0.9):
    """Induced KU of 1 for all that was measured."""
    return {
        (family, learner): Measurement(1.0, low, 1.1, len(each), "replicate", "by hand")
        for family, of_family in found.items()
        for learner, each in of_family.items()
    }


def judged(found, thesis=THESIS, wanted=EVERYTHING, learnt=None):
    learnt = has_learnt(found) if learnt is None else learnt
    return judge(thesis, compare(thesis, found), learnt, wanted)


def states(ruling, role):
    return [condition.state for condition in ruling.conditions if condition.role == role]


BETTER = outcomes((1.5, 0.2), (1.0, 0.6), (1.2, 0.9))


def test_supported_needs_dominance_over_all_everywhere():
    found = judged(BETTER)
    assert found.verdict == "supported"
    assert states(found, "supports") == ["met"] * 4
    assert states(found, "falsifies") == ["refuted"] * 2
    comparisons = compare(THESIS, BETTER)
    assert all(c.dominates and not c.dominated for c in comparisons) and len(comparisons) == 4


def test_falsified_by_one_that_dominates_everywhere():
    found = judged(outcomes((1.0, 0.5), (1.9, 0.1), (0.5, 0.9)))
    assert found.verdict == "falsified"
    assert found.because.startswith("it holds that a dominates own in every family")
    assert states(found, "falsifies") == ["met", "refuted"]


def test_higher_ku_bought_with_higher_bku_is_not_as_stated():
    """One half of the thesis is surely wrong, and yet nothing dominates it."""
    bought = outcomes((1.5, 0.9), (1.0, 0.2), (1.0, 0.2))
    found = judged(bought)
    assert found.verdict == "not as stated"
    assert found.because.startswith("refuted: own on x dominates a")
    assert states(found, "falsifies") == ["refuted"] * 2
    assert not any(c.dominates or c.dominated for c in compare(THESIS, bought))


def test_one_surely_worse_in_one_family_is_not_as_stated():
    mixed = outcomes((1.0, 0.5), (1.9, 0.1), (0.5, 0.9))
    mixed["y"]["a"] = replicates(0.2, 1.5, seed=99)
    found = judged(mixed)
    assert found.verdict == "not as stated"
    assert states(found, "supports") == ["refuted", "met", "met", "met"]


def test_what_cannot_be_told_is_inconclusive():
    """Equal in BKU: no interval excludes 0, so that nothing is refuted either."""
    found = judged(outcomes((1.5, 0.5), (1.0, 0.5), (1.0, 0.9)))
    assert found.verdict == "inconclusive"
    assert states(found, "supports").count("undetermined") == 2
    assert found.because.startswith("not determined: own on x dominates a")
    assert set(states(found, "falsifies")) == {"refuted"}  # its KU is surely lower


def test_a_small_p_value_without_its_interval_decides_nothing():
    """BKU lower by 1.5, 1 and 0.5: t = 3.46, one-sided p = 0.037, but 4.30 is what 95% needs."""
    one = THESIS.model_copy(update={"against": ("a",), "families": ("x",)})
    sure = [np.tile([1.9, 0.1], (50, 1))] * 3
    apart = [np.tile([0.1 + 0.01 * i, 1.6 - 0.5 * i], (50, 1)) for i in range(3)]
    (condition,) = compare(one, {"x": {"own": sure, "a": apart}}, crossed=True)
    assert condition.p_dominates == pytest.approx(0.037, abs=0.001)
    assert condition.BKU.high > 0 and not condition.dominates


def test_no_verdict_on_fewer_than_three_replicates():
    strong = outcomes((1.9, 0.0), (0.1, 1.9), (0.1, 1.9))
    for count, verdict in ((1, None), (2, None), (3, "supported")):
        few = {f: {n: r[:count] for n, r in found.items()} for f, found in strong.items()}
        found = judged(few)
        assert found.verdict == verdict
        assert found.conditions[0].state == ("met" if verdict else "refuted")


def test_samples_of_one_replicate_are_no_replicates():
    learnt = {at: Measurement(1.0, 0.9, 1.1, 200, "sample", "by hand") for at in EVERYTHING}
    assert judged(BETTER, learnt=learnt).verdict is None


def test_no_verdict_where_a_family_or_an_opponent_is_missing():
    found = judged({"x": BETTER["x"]})
    assert found.verdict is None and "own is measured" in found.because and "y" in found.because
    without = {family: {"own": of["own"], "a": of["a"]} for family, of in BETTER.items()}
    found = judged(without)
    assert found.verdict is None and "b is measured" in found.because
    # But not where the opponent can't handle it.
    half = {"x": BETTER["x"], "y": without["y"]}
    assert judged(half, wanted=[at for at in EVERYTHING if at != ("y", "b")]).verdict == "supported"


@pytest.mark.parametrize(("low", "state"), [(0.1, "met"), (-0.1, "undetermined")])
def test_no_verdict_on_what_has_not_learnt(low, state):
    """One opponent's induced KU is not surely above 0, or surely isn't."""
    learnt = has_learnt(BETTER)
    learnt["y", "b"] = Measurement(0.2, low, 0.3, 3, "replicate", "by hand")
    found = judged(BETTER, learnt=learnt)
    (condition,) = (c for c in found.conditions if c.name.startswith("b has learnt on y"))
    assert condition.state == state
    assert found.verdict == ("supported" if state == "met" else None)
    learnt["y", "b"] = Measurement(-0.2, -0.3, -0.1, 3, "replicate", "by hand")
    found = judged(BETTER, learnt=learnt)
    assert found.verdict is None and "refuted" in states(found, "requires")


def test_samples_are_paired():
    """A difference of 0.01 under a spread of 1 shows only if samples are paired."""
    generator = np.random.default_rng(0)
    shared = [generator.standard_normal((300, 2)) for _ in range(3)]
    better = [
        r + np.array([0.01, -0.01]) + 1e-4 * generator.standard_normal((300, 2)) for r in shared
    ]
    (found,) = compare(THESIS, {"x": {"own": better, "a": shared}})
    assert found.KU.low > 0.009 and found.BKU.high < -0.009
    assert found.p_dominates < 0.001 and found.p_dominated > 0.99
    assert found.KU.value == pytest.approx(0.01, abs=1e-3)


def test_p_values_are_adjusted_over_all_comparisons():
    """Of two, by Holm: the smaller p is doubled, the larger stays, and their order, too."""
    small, large = sorted(
        compare(THESIS.model_copy(update={"against": ("a",)}), BETTER),
        key=lambda comparison: comparison.p_dominates_alone,
    )
    assert small.p_dominates_alone < large.p_dominates_alone
    assert large.p_dominates == max(2 * small.p_dominates_alone, large.p_dominates_alone)
    assert small.p_dominates == 2 * small.p_dominates_alone


def test_dominance_needs_the_adjusted_p(monkeypatch):
    """Clear intervals and a p of its own below the level are not enough."""
    assert all(comparison.dominates for comparison in compare(THESIS, BETTER))
    monkeypatch.setattr(stats, "holm", lambda p_values: dict.fromkeys(p_values, THESIS.level))
    for comparison in compare(THESIS, BETTER):
        assert comparison.p_dominates_alone < THESIS.level and comparison.KU.low > 0
        assert not comparison.dominates


def test_the_thesis_names_learners_and_families_that_there_are():
    from kubku.learners.registry import LEARNERS
    from kubku.tasks import FAMILIES as THERE_ARE

    thesis = declared()
    assert {thesis.learner, *thesis.against} <= LEARNERS.keys()
    assert {*thesis.families} == THERE_ARE.keys()
