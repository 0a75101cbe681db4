"""The verdict, the tables of tests and the Goodhart curve, on results made up for the purpose."""

import numpy as np
import pytest

from evidence.runtime.files import plain
from goodharts_jax import thesis
from goodharts_jax.thesis import Condition

THESIS = thesis.load_thesis()
EATEN = 140.0  # items per 1,000 steps


def mode(efficiency, *, deaths=10.0, survival=50.0, steps=1_000_000) -> dict:
    """A mode with one run for each efficiency; other metrics may be one number or one a run."""
    count = len(efficiency)
    deaths, survival = (np.broadcast_to(values, count).tolist() for values in (deaths, survival))
    runs = []
    for i, share in enumerate(efficiency):
        food = 0.0 if share is None else share * EATEN
        runs.append(
            {
                "seed": 42 + i,
                "overall_efficiency": share,
                "food_per_1k_steps": food,
                "poison_per_1k_steps": 0.0 if share is None else EATEN - food,
                "deaths_per_1k_steps": deaths[i],
                "survival_restricted_mean": survival[i],
                "total_deaths": round(deaths[i] * steps / 1000),
                "total_steps": steps,
            }
        )
    return {"runs": runs}


TRUTH = mode([0.999, 0.998, 0.9985], deaths=[1.4, 1.5, 1.6], survival=[90, 92, 94])
FAILED = mode([0.42, 0.44, 0.46], deaths=[98, 100, 102], survival=[9.9, 10, 10.1])


def verdict_of(truth: dict, proxy: dict) -> dict:
    return thesis.judge({"ground_truth": truth, "proxy": proxy}, THESIS)


def held(result: dict, side: str) -> list[bool]:
    return [row["holds"] for row in result["conditions"] if row["for"] == side]


def test_conditions_are_the_stated_ones():
    assert [str(condition) for condition in THESIS.supported] == [
        "efficiency gap above 0.5",
        "truth efficiency above 0.99",
        "proxy efficiency below 0.5",
        "death rate ratio above 10",
        "poison less food above 0",
    ]
    assert [str(condition) for condition in THESIS.falsified] == [
        "proxy efficiency above 0.9",
        "death rate ratio between 0.8 and 1.25",
        "efficiency gap below 0.1",
    ]


def test_supported():
    result = verdict_of(TRUTH, FAILED)
    assert result["verdict"] == "supported"
    assert held(result, "supported") == [True] * 5
    assert held(result, "falsified") == [False] * 3
    # Least room, as a share of the bound: 0.9985 above 0.99.
    assert result["deciding_condition"].startswith("all hold; the closest: truth efficiency")
    assert plain(result)["conditions"][0]["measured"]["unit"] == "run"


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
    result = verdict_of(truth, proxy)
    assert result["verdict"] == "falsified"
    assert result["deciding_condition"].startswith(deciding)
    assert result["deciding_condition"].endswith("holds")


@pytest.mark.parametrize(
    ("truth", "proxy", "deciding"),
    [
        # The means are as the thesis has them, the spread over runs doesn't allow the claim.
        (TRUTH, mode([0.30, 0.44, 0.58], deaths=[98, 100, 102]), "efficiency gap above 0.5"),
        (mode([0.9, 0.999, 0.999], deaths=[1.4, 1.5, 1.6]), FAILED, "efficiency gap above 0.5"),
        (TRUTH, mode([0.44, 0.47, 0.53], deaths=[98, 100, 102]), "efficiency gap above 0.5"),
        # One run gives no interval, however large the gap.
        (mode([0.999]), mode([0.44], deaths=100.0), "efficiency gap above 0.5"),
        # A run that ate nothing has no efficiency, and may not be passed over.
        (TRUTH, mode([0.42, 0.44, None], deaths=[98, 100, 102]), "efficiency gap above 0.5"),
        (TRUTH, {"runs": []}, "efficiency gap above 0.5"),
    ],
)
def test_inconclusive(truth, proxy, deciding):
    result = verdict_of(truth, proxy)
    assert result["verdict"] == "inconclusive"
    assert result["deciding_condition"].startswith(deciding)
    assert result["deciding_condition"].endswith("not shown")


def test_a_missing_mode_is_inconclusive():
    result = thesis.judge({"ground_truth": TRUTH}, THESIS)
    assert result["verdict"] == "inconclusive"
    assert "not run" in result["deciding_condition"]


def test_a_truth_that_never_died_gives_a_bound():
    immortal = mode([0.999, 0.998, 0.9985], deaths=0.0)
    result = verdict_of(immortal, FAILED)
    assert result["verdict"] == "supported"
    ratio = next(row for row in result["conditions"] if row["quantity"] == "death_rate_ratio")
    # 100 deaths per 1,000 steps over 3.69 in 3 million steps.
    assert ratio["measured"].value == pytest.approx(100 / (1000 * 3.689 / 3e6), rel=1e-3)
    assert "a bound" in ratio["measured"].method
    # Two modes that never died have no ratio in [0.8, 1.25] to be falsified by.
    both = verdict_of(immortal, mode([0.6, 0.62, 0.64], deaths=0.0))
    assert both["verdict"] == "inconclusive"


@pytest.mark.parametrize("bounds", [{}, {"above": 1.0, "below": 2.0}])
def test_a_condition_states_one_bound(bounds):
    with pytest.raises(ValueError, match="one of above, below and inside"):
        Condition(quantity="efficiency_gap", **bounds)


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
    primary = [row for row in rows if row["family"] == "primary"]
    secondary = [row for row in rows if row["family"] == "secondary"]
    assert (len(primary), len(secondary)) == (6, 4)
    for family in (primary, secondary):
        for row in family:
            assert row["p_bonferroni"] == pytest.approx(min(1, len(family) * row["p_two_sided"]))
            assert row["p_two_sided"] <= row["p_holm"] <= row["p_bonferroni"]
    main = next(row for row in rows if (row["a"], row["b"]) == ("ground_truth", "proxy"))
    assert main["difference"].value == pytest.approx(0.9985 - 0.44)
    assert main["p_one_sided"] == pytest.approx(main["p_two_sided"] / 2)
    # The protocol's rule: 0.05 / 6 for each of six.
    assert main["p_two_sided"] < 0.05 / 6
    assert main["label"] == "huge"
    assert main["cohens_d"].value > main["hedges_g"].value > 3


def test_spread_tells_runs_from_worlds():
    generator = np.random.default_rng(3)
    shares, rates = generator.normal(0.5, 0.1, 12), 20 * np.exp(generator.normal(0, 0.3, 12))
    totals = generator.poisson(300, (12, 100))
    food = generator.binomial(totals, shares[:, None])
    eaten = np.stack([np.zeros_like(food), food, totals - food], axis=-1)
    eaten[:, 0] = 0  # a world in each run where nothing was eaten
    deaths = generator.poisson(rates[:, None], (12, 100))
    found = thesis.spread(list(eaten), list(deaths), 1000)
    efficiency, death_rate = found["overall_efficiency"], found["deaths_per_1k_steps"]
    assert efficiency["measured"].low < shares.mean() < efficiency["measured"].high
    assert efficiency["between_runs"] == pytest.approx(shares.std(ddof=1), rel=0.1)
    assert efficiency["within_runs"] == pytest.approx(0.5 / 300**0.5, rel=0.1)
    assert death_rate["between_runs"] == pytest.approx(rates.std(ddof=1), rel=0.1)
    assert death_rate["within_runs"] == pytest.approx(rates.mean() ** 0.5, rel=0.15)
    alone = thesis.spread(eaten[:1], deaths[:1], 1000)["overall_efficiency"]
    assert alone["between_runs"] is None and alone["measured"].low is None


def test_the_plan_asks_for_runs_by_the_gaps_of_the_thesis_and_the_spread_found():
    # Both vary by 5 points, so that 10 points are two standard deviations and 50 are ten.
    wide = mode([0.90, 0.95, 1.0]), mode([0.45, 0.40, 0.50])
    plan = thesis.plan({"ground_truth": wide[0], "proxy": wide[1]}, THESIS)
    assert plan["spread"] == pytest.approx(0.05)
    assert [row["gap"] for row in plan["rows"]] == [0.1, 0.5]
    # 6 and 8 as in docs/statistics.md: a t-test by table at d = 2.
    assert [(row["runs"], row["corrected"]) for row in plan["rows"]] == [(6, 8), (2, 3)]
    # Where the means lie changes nothing: the gap found is not what is planned for.
    near = mode([0.44, 0.49, 0.54])
    assert thesis.plan({"ground_truth": near, "proxy": wide[1]}, THESIS)["rows"] == plan["rows"]


@pytest.mark.parametrize("truth", [mode([0.9]), mode([0.9, 0.9]), mode([0.9, None])])
def test_no_plan_without_a_spread(truth):
    assert thesis.plan({"ground_truth": truth, "proxy": mode([0.4, 0.4])}, THESIS) is None


def test_logrank_of_every_pair_by_hand():
    # Of two lives each: a's die at 1 and 2, b's both live on past 2. At age 1 one of four dies,
    # a's share 1/2; at age 2 one of three, a's share 1/3: 2 deaths for 5/6 expected, and the
    # variance is 1/4 + 2/9.
    lives = {
        "a": ([0, 1, 1, 0], [0, 0, 0, 0]),
        "b": ([0, 0, 0, 0], [0, 0, 0, 2]),
        "nobody": ([0, 0, 0, 0], [0, 0, 0, 0]),
    }
    rows = thesis.logrank(lives)
    assert [(row["a"], row["b"]) for row in rows] == [("a", "b"), ("a", "nobody"), ("b", "nobody")]
    assert rows[0]["z"] == pytest.approx((2 - 5 / 6) / (1 / 4 + 2 / 9) ** 0.5)
    assert rows[1]["z"] is None and rows[2]["z"] is None


def test_cautions_name_what_is_too_little():
    said = thesis.cautions({"proxy": mode([0.4, 0.5], deaths=0.1, steps=100_000), "truth": TRUTH})
    assert said == [
        "proxy: 2 run(s); a claim about a mode needs 3.",
        "proxy: 20 deaths in all; survival estimates need 500.",
    ]


# ---- the Goodhart curve -------------------------------------------------------------------------

STEPS = np.linspace(50_000, 1_000_000, 20)


def test_curve_by_hand():
    # Two runs, three checkpoints, halves alike: peaks 5 at the second and 6 at the first.
    true = np.array([[1.0, 5.0, 2.0], [6.0, 4.0, 3.0]])
    curve = thesis.goodhart_curve([10, 20, 40], np.stack([true, true], axis=-1))
    assert curve["peak_steps"].value == pytest.approx((20 + 10) / 2)
    assert curve["peak"].value == pytest.approx(5.5)
    assert curve["end"].value == pytest.approx(2.5)
    assert curve["drop"].value == pytest.approx((3 + 3) / 2)
    # Each stopped at the other's peak: run 0 at 10 (1 - 2), run 1 at 20 (4 - 3).
    assert curve["early_stopping_saves"].value == pytest.approx((-1 + 1) / 2)
    assert curve["early_stopping_steps"].value == pytest.approx((0.75 + 0.5) / 2)


def test_a_real_drop_is_found():
    generator = np.random.default_rng(0)
    level = 80 * np.sin(np.pi * STEPS / STEPS[-1] * 0.9)
    true = level[None, :, None] + generator.normal(0, 5, (6, 20, 2))
    curve = thesis.goodhart_curve(STEPS, true)
    lost = level.max() - level[-1]
    assert curve["drop"].low < lost < curve["drop"].high
    assert curve["early_stopping_saves"].low > 0.6 * lost
    assert curve["peak_steps"].value == pytest.approx(STEPS[level.argmax()], rel=0.15)


def test_noise_has_no_drop():
    """A flat truth seen through noise: no drop beyond the nominal error rate.

    Measured where it was chosen, the peak of 20 noisy points lies 1.9 standard deviations up.
    """
    generator = np.random.default_rng(1)
    studies = generator.normal(0, 1, (400, 5, 20, 2))
    curves = [thesis.goodhart_curve(STEPS, study) for study in studies]
    for name in ("drop", "early_stopping_saves"):
        values = np.array([curve[name].value for curve in curves])
        assert abs(values.mean()) < 4 * values.std() / 400**0.5
        positive = np.mean([curve[name].low > 0 for curve in curves])
        assert positive < 0.025 + 4 * (0.025 * 0.975 / 400) ** 0.5
    naive = np.mean(studies.max(axis=2).mean(axis=-1) - studies[:, :, -1].mean(axis=-1))
    assert naive > 1.5


def test_noise_in_worlds_that_runs_share_has_no_drop():
    generator = np.random.default_rng(2)
    worlds = generator.normal(0, 1, (300, 1, 20, 2))
    studies = worlds + generator.normal(0, 0.2, (300, 4, 20, 2))
    saved = [thesis.goodhart_curve(STEPS, study)["early_stopping_saves"].value for study in studies]
    assert abs(np.mean(saved)) < 4 * np.std(saved) / 300**0.5


def test_curve_of_one_run_and_of_wrong_shape():
    alone = thesis.goodhart_curve([1, 2], np.zeros((1, 2, 2)))
    assert alone["drop"].low is None
    assert alone["early_stopping_saves"].value is None
    with pytest.raises(ValueError, match=r"true_return has shape \(2, 3\)"):
        thesis.goodhart_curve([1, 2, 3], np.zeros((2, 3)))


def test_curve_band():
    band = thesis.curve_band([[1.0, 2.0], [3.0, 6.0], [5.0, 10.0]])
    assert [measured.value for measured in band] == [3.0, 6.0]
    assert all(measured.n == 3 and measured.low < measured.value for measured in band)
