"""The verdict can go each way: replicates made so that each must come out."""

import numpy as np
import pytest

from evidence import stats
from evidence.measurement import Measurement
from kubku import protocol, samples
from kubku.frontier import Outcome
from kubku.settings import Experiment
from kubku.thesis import Pilot, Standing, Thesis, answer, compare, declared, judge

THESIS = Thesis(
    statement="it is better",
    learner="own",
    base="grown",
    against=("a", "b"),
    families=("x", "y"),
    bku=0.2,
    beside=(0.4,),
    slack=0.05,
    level=0.05,
    worth=0.1,
    power=0.8,
    replicates=3,
    pilot=Pilot(seed=1, replicates=2, spread={"x": 0.1, "y": 0.1}),
    seed=0,
    budget="standard",
)
FAMILIES = ("x", "y")
EVERYTHING = [(family, learner) for family in FAMILIES for learner in ("own", "a", "b")]
LEARNT = Measurement(1.0, 0.9, 1.1, 3, "replicate", "by hand")


def outcome(ku, bku, generator, n=200, shift=0.0):
    """n samples around a KU, and traps of which the share bku / 2 is answered in each stratum."""
    traps = np.zeros((n, 5, 2))
    traps[..., 1] = 1
    traps[..., 0] = bku / 2
    return Outcome(ku + shift + 0.1 * generator.standard_normal(n), traps, True)


def standing(ku, bku, seed, count=3, n=200, induced=LEARNT):
    """`count` replicates that differ by hundredths."""
    generator = np.random.default_rng(seed)
    shifts = 0.02 * generator.standard_normal(count)
    each = [outcome(ku, bku, generator, n, shift) for shift in shifts]
    return Standing({0.2: each, 0.4: each}, induced)


def outcomes(own, a, b, families=FAMILIES, count=3):
    named = {"own": own, "a": a, "b": b}
    return {
        family: {
            name: standing(*means, seed=10 * i + j, count=count)
            for j, (name, means) in enumerate(named.items())
        }
        for i, family in enumerate(families)
    }


def has_learnt(found):
    return {
        (family, learner): of.induced
        for family, of_family in found.items()
        for learner, of in of_family.items()
    }


def judged(found, thesis=THESIS, wanted=EVERYTHING):
    return judge(thesis, compare(thesis, found), has_learnt(found), wanted)


def states(ruling, role):
    return [condition.state for condition in ruling.conditions if condition.role == role]


BETTER = outcomes((1.5, 0.2), (1.0, 0.2), (1.2, 0.1))


def test_a_world_where_it_must_win():
    found = judged(BETTER)
    assert found.verdict == "supported"
    assert states(found, "supports") == ["met"] * 4
    assert states(found, "falsifies") == ["refuted"] * 2
    comparisons = compare(THESIS, BETTER)
    assert all(c.dominates and not c.dominated for c in comparisons) and len(comparisons) == 4
    assert answer(THESIS, comparisons) == "At a BKU of 0.2 own has more KU in 4 of 4 comparisons."


def test_a_world_where_it_must_lose():
    """One opponent has more in every family."""
    worse = outcomes((1.0, 0.2), (1.9, 0.2), (0.5, 0.2))
    found = judged(worse)
    assert found.verdict == "falsified"
    assert found.because.startswith("it holds that a has more KU than own in every family")
    assert states(found, "falsifies") == ["met", "refuted"]
    told = answer(THESIS, compare(THESIS, worse))
    assert told == (
        "At a BKU of 0.2 own has more KU in 2 of 4 comparisons; it has less than a on x and y."
    )


def test_one_surely_worse_in_one_family_is_not_as_stated():
    mixed = outcomes((1.0, 0.2), (1.9, 0.2), (0.5, 0.2))
    mixed["y"]["a"] = standing(0.2, 0.2, seed=99)
    found = judged(mixed)
    assert found.verdict == "not as stated"
    assert states(found, "supports") == ["refuted", "met", "met", "met"]


def test_what_cannot_be_told_is_inconclusive():
    alike = outcomes((1.5, 0.2), (1.0, 0.2), (1.0, 0.2))
    own = alike["x"]["own"].outcomes[0.2]
    shifted = [o._replace(ku=o.ku + 0.1 * s) for o, s in zip(own, (-1, 0, 1), strict=True)]
    alike["x"]["b"] = Standing({0.2: shifted, 0.4: shifted}, LEARNT)
    found = judged(alike)
    assert found.verdict == "inconclusive"
    assert states(found, "supports").count("undetermined") == 1
    assert found.because.startswith("not determined: own on x has more KU than b")
    assert answer(THESIS, compare(THESIS, alike)).endswith("3 of 4 comparisons; 1 are undecided.")
    # Who answers as it does is no riddle: it surely has no more.
    alike["x"]["b"] = alike["x"]["own"]
    assert judged(alike).verdict == "not as stated"


def test_knowledge_bought_with_bad_knowledge_is_no_win():
    """Its own BKU is .3 on the test split where .2 was to be kept: it wins nothing."""
    bought = outcomes((1.5, 0.3), (1.0, 0.2), (1.0, 0.2))
    comparisons = compare(THESIS, bought)
    assert not any(c.dominates or c.kept for c in comparisons)
    assert all(c.KU.low > 0.3 for c in comparisons)
    assert judged(bought).verdict == "inconclusive"
    # Nor does it lose to one that doesn't keep the limit.
    theirs = judged(outcomes((1.0, 0.2), (1.5, 0.3), (0.5, 0.2)))
    assert theirs.verdict == "inconclusive"
    assert states(theirs, "supports") == ["undetermined", "met"] * 2
    # Less than the limit is nothing to be charged with.
    assert judged(outcomes((1.5, 0.2), (1.0, 0.0), (1.0, 0.0))).verdict == "supported"


def test_a_win_over_who_has_not_learnt_is_none():
    nothing = Measurement(0.0, -0.1, 0.1, 3, "replicate", "by hand")
    idle = outcomes((1.5, 0.2), (1.0, 0.2), (1.2, 0.1))
    idle["x"]["a"] = standing(0.1, 0.0, seed=5, induced=nothing)
    found = judged(idle)
    assert found.verdict == "inconclusive" and "hasn't learnt" in found.because
    assert [c.dominates for c in compare(THESIS, idle)] == [False, True, True, True]


def test_no_verdict_where_it_has_not_learnt_itself():
    for low in (-0.1, 0.1):
        induced = Measurement(0.2, low, 0.3, 3, "replicate", "by hand")
        mixed = outcomes((1.5, 0.2), (1.0, 0.2), (1.2, 0.1))
        mixed["y"]["own"] = standing(1.5, 0.2, seed=5, induced=induced)
        assert judged(mixed).verdict == ("supported" if low > 0 else None)


def test_a_small_p_value_without_its_interval_decides_nothing():
    """KU higher by .15, .1 and .05: t = 3.46, one-sided p = 0.037, but 4.30 is what 95% needs."""
    one = THESIS.model_copy(update={"against": ("a",), "families": ("x",)})
    generator = np.random.default_rng(0)
    flat = [outcome(1.0, 0.2, generator)._replace(ku=np.full(50, 1.0))] * 3
    apart = [o._replace(ku=np.full(50, 0.85 + 0.05 * i)) for i, o in enumerate(flat)]
    of = {"own": Standing({0.2: flat, 0.4: flat}, LEARNT)}
    of["a"] = Standing({0.2: apart, 0.4: apart}, LEARNT)
    (found,) = compare(one, {"x": of})
    assert found.p_dominates == pytest.approx(0.037, abs=0.001)
    assert found.KU.low < 0 and not found.dominates


def test_no_verdict_on_fewer_replicates_than_planned():
    planned = THESIS.model_copy(update={"replicates": 5})
    for thesis, count, verdict in (
        (THESIS, 2, None),
        (THESIS, 3, "supported"),
        (planned, 4, None),
        (planned, 5, "supported"),
    ):
        strong = outcomes((1.9, 0.0), (0.1, 0.2), (0.1, 0.2), count=count)
        assert judged(strong, thesis).verdict == verdict


def test_no_verdict_where_a_family_or_an_opponent_is_missing():
    found = judged({"x": BETTER["x"]})
    assert found.verdict is None and "own is measured" in found.because and "y" in found.because
    without = {family: {"own": of["own"], "a": of["a"]} for family, of in BETTER.items()}
    found = judged(without)
    assert found.verdict is None and "b is measured" in found.because
    # But not where the opponent can't handle it.
    half = {"x": BETTER["x"], "y": without["y"]}
    assert judged(half, wanted=[at for at in EVERYTHING if at != ("y", "b")]).verdict == "supported"


def test_samples_are_paired():
    """The opponent was asked the first samples alone: only those are compared."""
    generator = np.random.default_rng(0)
    shared = [outcome(1.0, 0.2, generator, n=300) for _ in range(3)]
    better = [o._replace(ku=o.ku + 0.01 + 1e-3 * i) for i, o in enumerate(shared)]
    fewer = [o.first(100) for o in shared]
    of = {
        "own": Standing({0.2: better, 0.4: better}, LEARNT),
        "a": Standing({0.2: fewer, 0.4: fewer}, LEARNT),
    }
    (found,) = compare(THESIS, {"x": of})
    assert found.KU.value == pytest.approx(0.011) and found.KU.low > 0.005
    assert found.p_dominates < 0.01 and found.p_dominated > 0.99
    assert found.beside["0.4"] == found.KU


def test_the_map_of_wins_is_adjusted_over_all_comparisons():
    """Of two, by Holm: the smaller p is doubled, the larger stays, and their order, too."""
    small, large = sorted(
        compare(THESIS.model_copy(update={"against": ("a",)}), BETTER),
        key=lambda comparison: comparison.p_dominates_alone,
    )
    assert small.p_dominates_alone < large.p_dominates_alone
    assert large.p_dominates == max(2 * small.p_dominates_alone, large.p_dominates_alone)
    assert small.p_dominates == 2 * small.p_dominates_alone


def test_a_win_on_the_map_needs_the_adjusted_p_and_the_verdict_does_not(monkeypatch):
    """Clear intervals and a p of its own below the level are not enough for the map."""
    assert all(comparison.dominates for comparison in compare(THESIS, BETTER))
    monkeypatch.setattr(stats, "holm", lambda p_values: dict.fromkeys(p_values, THESIS.level))
    for comparison in compare(THESIS, BETTER):
        assert comparison.p_dominates_alone < THESIS.level and comparison.KU.low > 0
        assert not comparison.dominates
    assert judged(BETTER).verdict == "supported"  # a conjunction needs no correction


def test_replicates_needed_are_told_from_the_spread():
    """Differences of standard deviation .1, .1 worth finding: as many as one deviation needs."""
    generator = np.random.default_rng(0)
    flat = [outcome(1.0, 0.2, generator)._replace(ku=np.full(50, 1.0))] * 3
    apart = [o._replace(ku=np.full(50, 0.4 + 0.1 * i)) for i, o in enumerate(flat)]
    of = {"own": Standing({0.2: flat, 0.4: flat}, LEARNT)}
    of["a"] = Standing({0.2: apart, 0.4: apart}, LEARNT)
    (found,) = compare(THESIS, {"x": of})
    assert found.needed == stats.pairs_needed(1.0, alpha=0.025) == 10


def test_replicates_are_planned_from_a_pilot_on_other_seeds():
    """What the file says in words, from its own numbers; nothing of the pilot is drawn again."""
    thesis, pilot = declared(), declared().pilot
    needed = {family: thesis.needed(spread) for family, spread in pilot.spread.items()}
    assert needed == {"stories": 10, "series": 5, "grids": 48, "frames": 24}
    assert thesis.replicates == 11
    new, old = (drawn_from(of.seed, of.replicates) for of in (thesis, pilot))
    assert not new & old


def drawn_from(seed, replicates):
    """Seeds of base states, and of rules and samples."""
    return {
        of
        for number in range(replicates)
        for of in (seed + number, samples.seed_of_draws(seed, number))
    }


def test_the_thesis_names_what_there_is():
    from kubku.learners.registry import LEARNERS
    from kubku.tasks import FAMILIES as THERE_ARE

    thesis = declared()
    assert {thesis.learner, *thesis.against} <= LEARNERS.keys()
    assert {*thesis.families} == THERE_ARE.keys()
    assert {thesis.bku, *thesis.beside} == {*protocol.LIMITS} and thesis.bku == protocol.MATCHED


def test_the_usual_command_is_the_one_that_the_thesis_names():
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    from kubku.settings import read

    with initialize_config_module("conf.kubku", version_base=None):
        usual: Experiment = read(OmegaConf.to_container(compose("config"), resolve=True))
        named = compose("config", [f"budget={declared().budget}"])
        full = read(OmegaConf.to_container(compose("config", ["budget=full"]), resolve=True))
    thesis = declared()
    assert usual == read(OmegaConf.to_container(named, resolve=True))
    assert usual.seed == thesis.seed and {*usual.task.families} >= {*thesis.families}
    assert usual.budget.replicates == usual.budget.generator_seeds == thesis.replicates
    assert full.budget.generator_seeds >= thesis.replicates, "or no verdict would be given"
    assert {thesis.learner, *thesis.against} <= {*usual.learner.names}
