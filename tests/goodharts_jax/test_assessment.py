"""Tables, checks and joined sweeps, from counts and results made up for the purpose."""

import numpy as np
import pytest

from evidence import stats
from goodharts_jax import assessment, survival
from goodharts_jax.modes import make_mode
from goodharts_jax.ppo import History
from goodharts_jax.results import Metrics, ModeResults, Results, RunResults
from goodharts_jax.survival import LifeTable
from goodharts_jax.world import make_world

# ---- the table of modes -------------------------------------------------------------------------


def life_table(food, poison, deaths):
    """Two worlds of 100 steps with as much in each; all lives begin and end at once."""
    blank = survival.add(None, survival.empty_tally(2, 100))
    ages = np.zeros((2, 101), int)
    ages[:, 10] = 2 * deaths
    tally = blank.replace(
        eaten=np.array([[100 - food - poison, food, poison]] * 2),
        deaths=np.array([deaths] * 2),
        deaths_by_age=ages,
    )
    return LifeTable(tally, np.zeros((2, 101), int), np.array([[0, 20, 10]] * 2), 100)


def course(num_updates=4):
    return History(*(np.full(num_updates, 0.5, np.float32) for _ in History._fields))


def test_a_table_pools_lives_and_averages_runs():
    mode = make_mode((1, 0), (0, 1), food_reward=2, poison_reward=-1)
    trainings = [assessment.training(course(), 1000) for _ in range(2)]
    table = assessment.tabulate(
        {
            "mine": [life_table(30, 10, 1), life_table(5, 15, 3)],
            "script": [life_table(1, 1, 9), life_table(1, 1, 9)],
        },
        {"mine": (mode, trainings)},
        {"mine": [7, 8], "script": [7, 8]},
        make_world(),
        horizon=100,
        interestingness={"food": 0.5, "poison": 1.0},
    )
    mine, script = table["mine"], table["script"]
    assert [run.seed for run in mine.runs] == [7, 8]
    assert [run.overall_efficiency for run in mine.runs] == [0.75, 0.25]
    assert mine.intervals.overall_efficiency.value == pytest.approx(0.5)  # of runs alike
    assert mine.aggregates.overall_efficiency == pytest.approx(70 / 120)  # of meals alike
    assert mine.aggregates.total_deaths == 8 and mine.aggregates.total_steps == 400
    assert mine.runs[0].own_return_per_1k_steps == pytest.approx(1000 * (60 - 10) / 100)
    assert mine.runs[0].proxy_return_per_1k_steps == pytest.approx(1000 * (15 + 10) / 100)
    assert mine.runs[1].training == trainings[1] and not mine.scripted
    assert script.scripted and script.runs[0].training is None
    assert script.aggregates.own_return_per_1k_steps is None
    for name, measured in mine.other_intervals:
        assert measured == stats.other_interval([getattr(run, name) for run in mine.runs], "run")
    assert mine.spread["deaths_per_1k_steps"].measured.value == pytest.approx(20)


def test_spread_tells_runs_from_worlds():
    generator = np.random.default_rng(3)
    shares, rates = generator.normal(0.5, 0.1, 12), 20 * np.exp(generator.normal(0, 0.3, 12))
    totals = generator.poisson(300, (12, 100))
    food = generator.binomial(totals, shares[:, None])
    eaten = np.stack([np.zeros_like(food), food, totals - food], axis=-1)
    eaten[:, 0] = 0  # a world in each run where nothing was eaten
    deaths = generator.poisson(rates[:, None], (12, 100))
    found = assessment.spread(list(eaten), list(deaths), 1000)
    efficiency, death_rate = found["overall_efficiency"], found["deaths_per_1k_steps"]
    assert efficiency.measured.low < shares.mean() < efficiency.measured.high
    assert efficiency.between_runs == pytest.approx(shares.std(ddof=1), rel=0.1)
    assert efficiency.within_runs == pytest.approx(0.5 / 300**0.5, rel=0.1)
    assert death_rate.between_runs == pytest.approx(rates.std(ddof=1), rel=0.1)
    assert death_rate.within_runs == pytest.approx(rates.mean() ** 0.5, rel=0.15)
    alone = assessment.spread(eaten[:1], deaths[:1], 1000)["overall_efficiency"]
    assert alone.between_runs is None and alone.measured.low is None


def test_logrank_of_every_pair_by_hand():
    # Of two lives each: a's die at 1 and 2, b's both live on past 2. At age 1 one of four dies,
    # a's share 1/2; at age 2 one of three, a's share 1/3: 2 deaths for 5/6 expected, and the
    # variance is 1/4 + 2/9.
    lives = {
        "a": ([0, 1, 1, 0], [0, 0, 0, 0]),
        "b": ([0, 0, 0, 0], [0, 0, 0, 2]),
        "nobody": ([0, 0, 0, 0], [0, 0, 0, 0]),
    }
    rows = assessment.logrank(lives)
    assert [(row.a, row.b) for row in rows] == [("a", "b"), ("a", "nobody"), ("b", "nobody")]
    assert rows[0].z == pytest.approx((2 - 5 / 6) / (1 / 4 + 2 / 9) ** 0.5)
    assert rows[1].z is None and rows[2].z is None


def test_cautions_name_what_is_too_little():
    def mode(runs, deaths):
        counted = RunResults.model_construct(total_deaths=deaths)
        return ModeResults.model_construct(scripted=False, runs=(counted,) * runs)

    said = assessment.cautions({"proxy": mode(2, 10), "truth": mode(3, 1500)})
    assert said == [
        "proxy: 2 run(s); a claim about a mode needs 3.",
        "proxy: 20 deaths in all; survival estimates need 500.",
    ]


# ---- what training has to say -------------------------------------------------------------------


def test_steps_to_efficiency_on_synthetic_curves():
    """8 updates in a row of 99% food: the window that ends with the first such update counts."""
    food, poison = np.full(30, 0.1), np.where(np.arange(30) < 10, 0.1, 0.0)
    assert assessment.steps_to_efficiency(food, poison, steps=1000) == 18_000
    assert assessment.steps_to_efficiency(food, 0 * food, steps=1000) == 8_000
    assert assessment.steps_to_efficiency(food, 0.011 * food, steps=1000) is None
    assert assessment.steps_to_efficiency(0 * food, 0 * food, steps=1000) is None
    # Fewer updates than that are all the evidence there is.
    assert assessment.steps_to_efficiency(food[:3], 0 * food[:3], steps=1000) == 3_000


def test_a_training_is_told_in_64_entries_at_most():
    rising = np.arange(130, dtype=np.float32)
    history = course(130)._replace(reward=rising)
    told = assessment.training(history, steps=1000)
    assert told.steps == 130_000 and not told.converged
    # Blocks of three: the means of 0, 1, 2 and of 126, 127, 128, then 129 alone.
    assert len(told.history.reward) == len(told.history.steps) == 44
    assert told.history.reward[:2] == (1.0, 4.0) and told.history.reward[-1] == 129.0
    assert told.history.steps[:2] == (3000, 6000) and told.history.steps[-1] == 130_000


# ---- several results as one ---------------------------------------------------------------------


@pytest.fixture
def sweep(results, part):
    """Jobs of `--multirun mode=ground_truth,proxy seed=42,43,44`."""
    return {
        f"mode={mode},seed={seed}": part(results, [mode], [seed])
        for mode in ("ground_truth", "proxy")
        for seed in (42, 43, 44)
    }


def test_a_sweep_joins_into_the_experiment_it_was_cut_from(results, sweep):
    joined = assessment.join(sweep)
    assert joined.manifest.seeds == (42, 43, 44)
    assert joined.manifest.joined == tuple(sweep)
    assert set(joined.manifest.configuration["modes"]) == {"ground_truth", "proxy"}
    assert list(joined.modes)[:2] == ["ground_truth", "proxy"]
    for name, mode in joined.modes.items():
        assert mode.runs == results.modes[name].runs
        assert mode.intervals == results.modes[name].intervals
        assert mode.other_intervals == results.modes[name].other_intervals
        for key in ("total_deaths", "total_steps"):
            assert getattr(mode.aggregates, key) == getattr(results.modes[name].aggregates, key)
        for metric in Metrics.model_fields:
            assert getattr(mode.aggregates, metric) == getattr(mode.intervals, metric).value
    assert joined.thesis == results.thesis
    assert joined.ratios == results.ratios
    assert {(row.a, row.b, row.metric) for row in joined.comparisons} == {
        ("ground_truth", "proxy", metric) for metric in assessment.COMPARED
    }


def test_joined_results_are_read_back_alike(sweep, tmp_path):
    joined = assessment.join(sweep)
    joined.save(tmp_path)
    assert Results.load(tmp_path) == joined


def test_a_run_found_twice_counts_once(sweep):
    twice = sweep | {"again": sweep["mode=proxy,seed=42"]}
    assert assessment.join(twice).modes == assessment.join(sweep).modes


def test_different_conditions_are_not_joined(results, part, sweep):
    sweep["other"] = part(results, ["proxy"], [42], world={"size": 50})
    with pytest.raises(ValueError, match=r"not made under the same conditions.*world\.size"):
        assessment.join(sweep)


def test_a_mode_that_means_two_things_is_not_joined(results, part, sweep):
    other = part(results, ["proxy"], [42])
    other.manifest.configuration["modes"]["proxy"] = {"mortal": True}
    with pytest.raises(ValueError, match=r"other: modes\.proxy differs"):
        assessment.join(sweep | {"other": other})


def test_what_is_no_table_of_modes_is_not_joined(sweep, results):
    cells = tuple(results.phase_diagram) or ("a cell",)
    other = next(iter(sweep.values())).model_copy(update={"phase_diagram": cells})
    with pytest.raises(ValueError, match="other: only tables of modes are joined"):
        assessment.join(sweep | {"other": other})


def test_two_policies_of_one_name_are_not_joined(sweep):
    first = next(iter(sweep.values()))
    row = first.modes["random_walk"]
    (run, *_) = row.runs
    other = run.model_copy(update={"deaths_per_1k_steps": run.deaths_per_1k_steps + 1})
    changed = first.model_copy(
        update={"modes": {"random_walk": row.model_copy(update={"runs": (other,)})}}
    )
    with pytest.raises(ValueError, match=f"other: random_walk of seed {run.seed} is not what"):
        assessment.join(sweep | {"other": changed})


def test_nothing_is_not_joined():
    with pytest.raises(ValueError, match="no results to join"):
        assessment.join({})
