"""The verdict, the tests and the plan, on results made up for the purpose."""

import numpy as np
import pytest

from goodharts_jax import thesis
from goodharts_jax.results import ModeResults, RunResults
from goodharts_jax.thesis import Stated

THESIS = thesis.load_thesis()
EATEN = 140.0  # items per 1,000 steps


def mode(efficiency, *, deaths=10.0, survival=50.0, steps=1_000_000, energy=(48, 50, 52)):
    """A mode with one run for each efficiency; other metrics may be one number or one a run."""
    count = len(efficiency)
    deaths, survival, energy = (
        np.resize(values, count).astype(float).tolist() for values in (deaths, survival, energy)
    )
    runs = []
    for i, share in enumerate(efficiency):
        food = 0.0 if share is None else share * EATEN
        runs.append(
            RunResults.model_construct(
                seed=42 + i,
                overall_efficiency=share,
                food_per_1k_steps=food,
                poison_per_1k_steps=0.0 if share is None else EATEN - food,
                deaths_per_1k_steps=deaths[i],
                energy_per_1k_steps=energy[i],
                survival_restricted_mean=survival[i],
                total_deaths=round(deaths[i] * steps / 1000),
                total_steps=steps,
            )
        )
    return ModeResults.model_construct(scripted=False, runs=tuple(runs))


TRUTH = mode([0.999, 0.998, 0.9985], deaths=[1.4, 1.5, 1.6], survival=[90, 92, 94])
FAILED = mode([0.42, 0.44, 0.46], deaths=[98, 100, 102], survival=[9.9, 10, 10.1])
CHANCE = mode([0.67, 0.68, 0.69], deaths=92.0, energy=(-99, -99.5, -100))
NOBODY = mode([])


def ruling_of(truth, proxy, chance=CHANCE):
    return thesis.judge({"ground_truth": truth, "proxy": proxy, "random_walk": chance}, THESIS)


def states(ruling, role):
    return [condition.state for condition in ruling.conditions if condition.role == role]


def test_both_truths_beside_chance_may_disagree():
    """It loses energy and outlives a random walk; each difference has its own sign and interval."""
    proxy = mode([0.6] * 3, deaths=[70, 72, 74], survival=[30, 32, 34], energy=(-144, -145, -146))
    walk = mode([0.7] * 3, deaths=[89, 90, 91], survival=[10, 10.1, 9.9], energy=(-100, -100, -99))
    table = {"proxy": proxy, "random_walk": walk.model_copy(update={"scripted": True})}
    assert set(thesis.beside_chance(table)) == {"proxy"}
    energy, deaths, survival = thesis.beside_chance(table)["proxy"].values()
    assert energy.value == pytest.approx(-145 + 299 / 3) and energy.high < 0
    assert deaths.value == pytest.approx(-18) and deaths.high < 0
    assert survival.value == pytest.approx(22) and survival.low > 0
    assert thesis.beside_chance({"proxy": proxy}) == {}


def test_a_script_in_the_proxys_place_tells_whether_training_matters():
    """A proxy that learnt the truth is falsified, though what it is rewarded for is not."""
    table = {"ground_truth": TRUTH, "proxy": TRUTH, "random_walk": CHANCE}
    assert thesis.judge_script(table, THESIS) is None
    table["interestingness_seeker"] = FAILED.model_copy(update={"scripted": True})
    assert thesis.judge(table, THESIS).verdict == "falsified"
    assert thesis.judge_script(table, THESIS).verdict == "supported"
    # And the other way round: only training makes it fail.
    table |= {"proxy": FAILED, "interestingness_seeker": TRUTH}
    assert thesis.judge(table, THESIS).verdict == "supported"
    assert thesis.judge_script(table, THESIS).verdict == "falsified"


def test_conditions_are_the_stated_ones():
    def told(conditions):
        return [f"{stated.quantity.replace('_', ' ')} {stated.wanted}" for stated in conditions]

    assert told(THESIS.supported) == [
        "efficiency gap above 0.5",
        "truth efficiency above 0.99",
        "proxy efficiency below 0.5",
        "death rate ratio above 10",
        "poison less food above 0",
    ]
    assert told(THESIS.falsified) == [
        "proxy efficiency above 0.9",
        "death rate ratio between 0.8 and 1.25",
        "efficiency gap below 0.1",
    ]


def test_supported():
    ruling = ruling_of(TRUTH, FAILED)
    assert ruling.verdict == "supported"
    assert ruling.statement == THESIS.statement
    assert states(ruling, "requires") == ["met"] * 3
    assert states(ruling, "supports") == ["met"] * 5
    assert states(ruling, "falsifies") == ["refuted"] * 3
    assert ruling.because.startswith("all conditions are met; efficiency gap above 0.5: 0.5585 [")
    gap = next(c for c in ruling.conditions if c.role == "supports").measured["efficiency_gap"]
    assert gap.unit == "run" and gap.n == 3


@pytest.mark.parametrize(
    ("truth", "proxy", "deciding"),
    [
        (TRUTH, mode([0.97, 0.975, 0.98], deaths=[40, 60, 80]), "proxy efficiency above 0.9"),
        (
            mode([0.999, 0.998, 0.9985], deaths=[1.45, 1.5, 1.55]),
            mode([0.6, 0.62, 0.64], deaths=[1.45, 1.5, 1.55]),
            "death rate ratio between 0.8 and 1.25",
        ),
        (
            mode([0.92, 0.93, 0.94], deaths=[1.4, 1.5, 1.6]),
            mode([0.88, 0.885, 0.89], deaths=[40, 60, 80]),
            "efficiency gap below 0.1",
        ),
    ],
)
def test_falsified(truth, proxy, deciding):
    ruling = ruling_of(truth, proxy)
    assert ruling.verdict == "falsified"
    assert ruling.because.startswith(f"it holds that {deciding}")
    named = next(c for c in ruling.conditions if c.role == "falsifies" and c.state == "met")
    assert f"{named.name} {named.wanted}" == deciding


@pytest.mark.parametrize(
    ("truth", "proxy"),
    [
        # The means are as the thesis has them, the deviation of runs doesn't allow the claim.
        (TRUTH, mode([0.30, 0.44, 0.58], deaths=[98, 100, 102])),
        (mode([0.9, 0.999, 0.999], deaths=[1.4, 1.5, 1.6]), FAILED),
        (TRUTH, mode([0.44, 0.47, 0.53], deaths=[98, 100, 102])),
        # A run that ate nothing has no efficiency, and may not be passed over.
        (TRUTH, mode([0.42, 0.44, None], deaths=[98, 100, 102])),
    ],
)
def test_inconclusive(truth, proxy):
    ruling = ruling_of(truth, proxy)
    assert ruling.verdict == "inconclusive"
    assert ruling.because.startswith("not determined: efficiency gap above 0.5")
    assert "refuted" not in states(ruling, "supports")


@pytest.mark.parametrize(
    ("proxy", "refuted", "others"),
    [
        # As the kept runs: the gap is smaller than stated, and more food is eaten than poison.
        (
            mode([0.58, 0.59, 0.595], deaths=[70, 75, 80]),
            "efficiency gap above 0.5: 0.4102 [",
            ["refuted", "met", "refuted", "met", "refuted"],
        ),
        # All as stated but the death rate: five times that of the truth, not ten.
        (
            mode([0.42, 0.44, 0.46], deaths=[7.4, 7.5, 7.6]),
            "death rate ratio above 10: 5 [",
            ["met", "met", "met", "refuted", "met"],
        ),
    ],
)
def test_a_refuted_supporting_condition_is_not_as_stated(proxy, refuted, others):
    ruling = ruling_of(TRUTH, proxy)
    assert ruling.verdict == "not as stated"
    assert ruling.because.startswith(f"refuted: {refuted}")
    assert states(ruling, "supports") == others


@pytest.mark.parametrize(
    ("truth", "proxy", "missing"),
    [
        # One run gives no interval, two give one that no claim rests on, however large the gap.
        (mode([0.999]), mode([0.44], deaths=100.0), "ground truth runs at least 3 (there are 1)"),
        (TRUTH, mode([0.44, 0.45], deaths=[99, 101]), "proxy runs at least 3 (there are 2)"),
        (TRUTH, NOBODY, "proxy runs at least 3 (there are 0)"),
    ],
)
def test_no_verdict_on_fewer_than_three_runs(truth, proxy, missing):
    ruling = ruling_of(truth, proxy)
    assert ruling.verdict is None
    assert ruling.because == f"needed first: {missing}"


def test_no_verdict_on_a_mode_that_was_not_run():
    ruling = thesis.judge({"ground_truth": TRUTH, "random_walk": CHANCE}, THESIS)
    assert ruling.verdict is None
    assert "proxy runs at least 3 (there are 0)" in ruling.because
    gap = next(c for c in ruling.conditions if c.name == "efficiency gap")
    assert gap.measured["efficiency_gap"].method == "not run"


def test_untrained_agents_get_no_verdict():
    """They die alike, which would falsify the thesis, had the truth learnt anything."""
    untrained = mode([0.75, 0.74, 0.76], deaths=[85, 86, 87], energy=(-96, -100, -101))
    same = mode([0.74, 0.75, 0.76], deaths=[85, 86, 87], energy=(-97, -99, -101))
    ruling = ruling_of(untrained, same)
    assert "met" in states(ruling, "falsifies")
    assert ruling.verdict is None
    assert ruling.because.startswith(
        "needed first: energy per 1,000 steps of ground truth less that of a random walk above 0: "
    )
    worse = ruling_of(mode([0.75, 0.74, 0.76], deaths=[85, 86, 87], energy=(-150, -151)), same)
    assert states(worse, "requires") == ["met", "met", "refuted"] and worse.verdict is None


def test_without_a_random_walk_nothing_shows_that_the_truth_has_learnt():
    ruling = thesis.judge({"ground_truth": TRUTH, "proxy": FAILED}, THESIS)
    assert states(ruling, "requires") == ["met", "met", "undetermined"]
    assert states(ruling, "supports") == ["met"] * 5
    assert ruling.verdict is None and "not run" in ruling.because


def test_a_truth_that_never_died_gives_a_bound():
    immortal = mode([0.999, 0.998, 0.9985], deaths=0.0)
    ruling = ruling_of(immortal, FAILED)
    assert ruling.verdict == "supported"
    ratio = next(c for c in ruling.conditions if c.name == "death rate ratio")
    measured = ratio.measured["death_rate_ratio"]
    # 100 deaths per 1,000 steps over 3.69 in 3 million steps.
    assert measured.value == pytest.approx(100 / (1000 * 3.689 / 3e6), rel=1e-3)
    assert "a lower bound" in measured.method and measured.high == np.inf
    # Two modes that hardly died have no ratio in [0.8, 1.25] to be falsified by, nor one that is
    # surely below 10: what it is at most isn't known.
    for deaths in (0.0, 0.001):
        both = ruling_of(immortal, mode([0.6, 0.62, 0.64], deaths=deaths))
        assert "met" not in states(both, "falsifies")
        told = {c.state for c in both.conditions if c.name == "death rate ratio"}
        assert told == {"undetermined"}


@pytest.mark.parametrize("bounds", [{}, {"above": 1.0, "below": 2.0}])
def test_a_condition_states_one_bound(bounds):
    with pytest.raises(ValueError, match="one of above, below and inside"):
        Stated(quantity="efficiency_gap", **bounds)


# ---- tables -------------------------------------------------------------------------------------


def test_ratios():
    found = thesis.ratios({"ground_truth": TRUTH, "proxy": FAILED}, THESIS)
    assert found["survival_restricted_mean"].value == pytest.approx(9.2)
    assert found["deaths_per_1k_steps"].value == pytest.approx(100 / 1.5)
    assert thesis.ratios({"proxy": FAILED}, THESIS)["deaths_per_1k_steps"].method == "not run"


def test_comparisons_correct_within_families():
    modes = {
        "ground_truth": TRUTH,
        "ground_truth_handhold": mode([0.99, 0.997, 0.98]),
        "proxy": FAILED,
        "ground_truth_blinded": mode([0.9, 0.95, 0.97]),
        "random_walk": mode([0.66, 0.67, 0.68]),
        "once": mode([0.5]),
    }
    rows = thesis.comparisons(modes, "overall_efficiency", THESIS)
    primary = [row for row in rows if row.family == "primary"]
    secondary = [row for row in rows if row.family == "secondary"]
    assert (len(primary), len(secondary)) == (6, 4)
    for family in (primary, secondary):
        for row in family:
            assert row.p_bonferroni == pytest.approx(min(1, len(family) * row.p_two_sided))
            assert row.p_two_sided <= row.p_holm <= row.p_bonferroni
    main = next(row for row in rows if (row.a, row.b) == ("ground_truth", "proxy"))
    assert main.difference.value == pytest.approx(0.9985 - 0.44)
    assert main.p_one_sided == pytest.approx(main.p_two_sided / 2)
    # The protocol's rule: 0.05 / 6 for each of six.
    assert main.p_two_sided < 0.05 / 6
    assert main.label == "huge"
    assert main.cohens_d.value > main.hedges_g.value > 3


def test_the_plan_asks_for_runs_by_the_gaps_of_the_thesis_and_the_spread_found():
    # Both vary by 5 points, so that 10 points are two standard deviations and 50 are ten.
    wide = mode([0.90, 0.95, 1.0]), mode([0.45, 0.40, 0.50])
    plan = thesis.next_study({"ground_truth": wide[0], "proxy": wide[1]}, THESIS)
    assert plan.deviation == pytest.approx(0.05)
    assert [row.gap for row in plan.gaps] == [0.1, 0.5]
    # 6 and 8 as in docs/statistics.md: a t-test by table at d = 2.
    assert [(row.runs, row.corrected) for row in plan.gaps] == [(6, 8), (2, 3)]
    # Where the means lie changes nothing: the gap found is not what is planned for.
    near = mode([0.44, 0.49, 0.54])
    assert thesis.next_study({"ground_truth": near, "proxy": wide[1]}, THESIS).gaps == plan.gaps


@pytest.mark.parametrize("truth", [mode([0.9]), mode([0.9, 0.9]), mode([0.9, None])])
def test_no_plan_without_a_spread(truth):
    assert thesis.next_study({"ground_truth": truth, "proxy": mode([0.4, 0.4])}, THESIS) is None
