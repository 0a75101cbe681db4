"""A Goodhart result made of drawn numbers, and recordings of scripted agents in the real world."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.tree_util import Partial

from evidence import stats
from evidence.runtime import files
from goodharts_jax import assessment, curves, thesis, verification, world
from goodharts_jax import replay as replays
from goodharts_jax.policies import Output
from goodharts_jax.pressure import GoodhartCurve, PhaseCell, Returns, RunCurve
from goodharts_jax.results import (
    DeviceAgreement,
    Directions,
    History,
    LogRank,
    Manifest,
    ModeResults,
    Results,
    RunResults,
    SurvivalCurve,
    Totals,
    Training,
    Verification,
)

HORIZON = 500
# Efficiency, deaths and items eaten per 1,000 steps, share of deaths by poison.
RATES = {
    "ground_truth": (0.997, 4.0, 140.0, 0.05),
    "ground_truth_handhold": (0.995, 6.0, 135.0, 0.08),
    "proxy": (0.38, 120.0, 190.0, 0.8),
    "proxy_mortal": (0.40, 110.0, 170.0, 0.7),
    "ground_truth_blinded": (0.97, 55.0, 45.0, 0.03),
    "ground_truth_aliased": (0.68, 99.0, 5.0, 0.1),
    "random_walk": (0.67, 103.0, 18.0, 0.06),
    "omniscient_seeker": (1.0, 3.0, 150.0, 0.0),
    "avoider": (None, 100.0, 0.0, 0.0),
}
WORLD = {
    "size": 100,
    "view_radius": 5,
    "start_energy": 1.0,
    "move_cost": 0.1,
    "food_energy": 1.0,
    "poison_energy": -2.0,
    "food": [50, 200],
    "poison": [20, 100],
}
SCRIPTED = ("random_walk", "omniscient_seeker", "avoider")
CONFIGURATION = {
    "modes": {name: {"mortal": name != "proxy"} for name in RATES if name not in SCRIPTED},
    "seed": 42,
    "world": WORLD,
    "evaluation_world": WORLD,
    "ppo": {"num_worlds": 128, "rollout_length": 32, "epochs": 1, "num_minibatches": 8},
    "evaluation": {"deterministic": False},
    "budget": {"train_steps": 1_000_000, "max_steps": 4_000_000},
}


def make_results(num_runs: int = 3, *, full: bool = True) -> Results:
    """Results of every mode; `full` adds what only a full study computes."""
    draw = np.random.default_rng(0)
    seeds = list(range(42, 42 + num_runs))
    modes = {name: _mode(draw, seeds, name in SCRIPTED, *rates) for name, rates in RATES.items()}
    stated = thesis.load_thesis()
    found = Results(
        manifest=Manifest.now(
            CONFIGURATION,
            seeds,
            survival_horizon=HORIZON,
            wall_seconds={"training": 101.5, "evaluation": 40.2},
        ),
        modes=modes,
        thesis=thesis.judge(modes, stated),
        ratios=thesis.ratios(modes, stated),
        beside_chance=thesis.beside_chance(modes),
        warnings=tuple(assessment.cautions(modes)),
    )
    if not full:
        return found
    return with_parts(
        found,
        comparisons=tuple(
            row
            for metric in ("overall_efficiency", "deaths_per_1k_steps")
            for row in thesis.comparisons(modes, metric, stated)
        ),
        goodhart_curves={name: _goodhart_curve(draw, seeds) for name in ("proxy", "ground_truth")},
        phase_diagram=tuple(_phase_diagram(draw, num_runs)),
        verification=_verification(modes),
        logrank=(LogRank(a="ground_truth", b="proxy", z=-321.5),),
        device_agreement=DeviceAgreement(
            devices=("gpu:0", "cpu:0"), largest_difference=2.5e-6, tolerance=1e-4, agree=True
        ),
    )


def with_parts(record, **parts):
    """A record with other parts, validated."""
    return type(record)(**dict(record) | parts)


def _mode(draw, seeds, scripted, efficiency, deaths, eaten, by_poison) -> ModeResults:
    made = [_run(draw, seed, scripted, efficiency, deaths, eaten, by_poison) for seed in seeds]
    intervals = assessment.intervals(made)
    meals = [np.array([[0, run.food_per_1k_steps, run.poison_per_1k_steps]]) for run in made]
    worlds = [1 + draw.poisson(50 * meal, (8, 3)) for meal in meals]
    deaths = [draw.poisson(run.deaths_per_1k_steps, 8) for run in made]
    return ModeResults(
        scripted=scripted,
        aggregates=Totals(
            **{metric: measured.value for metric, measured in intervals},
            total_deaths=sum(run.total_deaths for run in made),
            total_steps=sum(run.total_steps for run in made),
        ),
        intervals=intervals,
        other_intervals=assessment.intervals(made, stats.other_interval),
        spread=assessment.spread(worlds, deaths, 1000),
        runs=tuple(made),
    )


def _run(draw, seed, scripted, efficiency, deaths, eaten, by_poison) -> RunResults:
    share = None if efficiency is None else float(np.clip(efficiency + draw.normal() * 0.02, 0, 1))
    rate = deaths * float(np.exp(draw.normal() * 0.05))
    food = eaten * (share or 0)
    poison = eaten - food if share is not None else 0.0
    steps, ages = 3_000_000, np.unique(np.geomspace(1, HORIZON, 60).astype(int))
    survival = np.exp(-ages * rate / 1000)
    histogram = draw.binomial(100, 0.0 if share is None else share, size=2_000)
    return RunResults(
        seed=seed,
        survival_mean=float(np.trapezoid(survival, ages)),
        survival_median=None if rate < 5 else 700 / rate,
        survival_restricted_mean=float(np.trapezoid(survival, ages)),
        deaths_per_1k_steps=rate,
        deaths_by_poison_share=by_poison,
        food_per_1k_steps=food,
        poison_per_1k_steps=poison,
        energy_per_1k_steps=food - 2 * poison - 100,
        proxy_return_per_1k_steps=0.5 * food + poison,
        own_return_per_1k_steps=None if scripted else 0.5 * food + poison,
        overall_efficiency=share,
        efficiency_mean=share,
        efficiency_mean_eaters=share,
        selectivity=None if share is None else share**2 / (share**2 + (1 - share) ** 2),
        total_deaths=int(rate * steps / 1000),
        total_steps=steps,
        deaths_by_poison=int(rate * steps / 1000 * by_poison),
        deaths_by_hunger=int(rate * steps / 1000 * (1 - by_poison)),
        survival=SurvivalCurve(ages=(0, *ages.tolist()), survival=(1.0, *survival.tolist())),
        efficiency_histogram=np.bincount(histogram, minlength=101),
        training=None if scripted else _training(draw, seed, efficiency, share),
    )


def _training(draw, seed, efficiency, share) -> Training:
    progress = np.linspace(0, 1, 40)
    reached = (share or 0.5) + (0.6 - (share or 0.5)) * np.exp(-6 * progress)
    efficient = (reached + draw.normal(size=40) * 0.01).clip(0, 1)
    others = ("deaths", "kl", "clipped", "policy_loss", "value_loss", "explained_variance")
    return Training(
        steps=1_000_000,
        steps_to_99_efficiency=200_000 if efficiency and efficiency > 0.99 else None,
        converged=seed != 43,
        history=History(
            steps=(progress * 1e6).astype(int),
            food=0.15 * efficient,
            poison=0.15 * (1 - efficient),
            reward=0.1 * (1 - np.exp(-5 * progress)),
            entropy=2.08 * np.exp(-2 * progress),
            grad_norm=np.ones(40),
            **dict.fromkeys(others, np.zeros(40)),
        ),
    )


def _goodhart_curve(draw, seeds) -> GoodhartCurve:
    pressure = np.r_[0, np.geomspace(0.01, 1, 19)]
    halves = draw.normal(size=(len(seeds), 20, 2)) * 3
    halves += (60 * pressure * np.exp(1 - 4 * pressure) * 4 - 150 * pressure**2 - 100)[:, None]
    lived = 10 + 20 * pressure[:, None] + draw.normal(size=(len(seeds), 20, 2))
    distance = (1.4 * np.sqrt(pressure))[None].repeat(len(seeds), axis=0)
    fitted, difference = curves.forms(distance, halves.mean(axis=-1))
    return GoodhartCurve(
        **dict(curves.peak(pressure * 1e6, halves)),
        steps=(pressure * 1e6).round().astype(int),
        by_survival=curves.peak(pressure * 1e6, lived),
        forms=fitted,
        gao_less_quadratic=difference,
        runs=tuple(
            RunCurve(
                seed=seed,
                sqrt_kl=distance[i],
                proxy_return=120 * (1 - np.exp(-4 * pressure)) + draw.normal(size=20),
                true_return=halves[i].mean(axis=1),
                deaths=100 - 20 * pressure,
                survival=lived[i].mean(axis=1),
            )
            for i, seed in enumerate(seeds)
        ),
    )


def _phase_diagram(draw, num_runs) -> list[PhaseCell]:
    axes = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0), (0.0, 0.1, 0.5, 1.0), (250_000, 500_000, 1_000_000)
    cells = []
    for reward, distance, steps in itertools.product(*axes):
        efficiency = 0.67 - 0.17 * np.tanh(reward) * (0.2 + distance) * steps / 5e5
        values = {
            "overall_efficiency": efficiency,
            "selectivity": efficiency - 0.1,
            "deaths_per_1k_steps": 130 * (1 - efficiency) ** 2 + 2,
            "drop": 20 * (1 - efficiency),
            "reward_correlation_random": -np.tanh(reward),
            "reward_correlation_trained": -np.tanh(reward) * distance,
        }
        measured = {
            name: stats.interval(value + draw.normal(size=num_runs) * 0.01, "run")
            for name, value in values.items()
        }
        gained = -100 * (1 - efficiency) + draw.normal(size=(2, num_runs))
        trained, untrained = (
            Returns(**{name: stats.interval(values, "run") for name in Returns.model_fields})
            for values in gained
        )
        cells.append(
            PhaseCell(
                poison_reward=reward,
                distance=distance,
                steps=steps,
                converged=num_runs - (reward == 1),
                trained=trained,
                untrained=untrained,
                gain=stats.interval(gained[0] - gained[1], "run"),
                **measured,
            )
        )
    return cells


def _verification(modes) -> dict[str, Verification]:
    floor = verification.survival_floor(modes)
    liking = {"ground_truth": (1.0, -2.0), "proxy": (0.5, 1.0), "ground_truth_blinded": (0.3, -1.0)}
    checks = {}
    for name, (food, poison) in liking.items():
        policy = Partial(_leaning, jnp.array([0.0, food, poison]), jnp.array(False))
        found = verification.directional_accuracy(policy, 5)
        checks[name] = Verification(
            directions=Directions(**{key: part.tolist() for key, part in vars(found).items()}),
            converged=True,
            survival_floor=floor[name],
        )
    return checks


def _leaning(
    worth: jax.Array, has_critic: jax.Array, view: jax.Array, noise_word: jax.Array
) -> Output:
    """Leans towards what is worth most, and the more the nearer it is."""
    offset = np.mgrid[-5:6, -5:6][:, :, :, None] - np.array(world.MOVES).T[::-1, None, None]
    nearness = jnp.asarray(np.exp(-1.2 * np.abs(offset).max(axis=0)), jnp.float32)
    logits = 12 * jnp.einsum("yx,yxa->a", worth[view], nearness)
    value = jax.nn.logsumexp(logits) - jnp.log(8.0)
    return Output(logits, jnp.where(has_critic, value, jnp.nan))


def make_replay(steps: int = 400) -> dict[str, Any]:
    """Recordings of policies that lean towards what is worth most, in one real world."""
    rules = world.make_world(food=(120, 120), poison=(90, 90))

    policies = {
        "ground_truth": ([[0, 0], [1, 0], [0, 1]], (0.0, 1.0, -2.0)),
        "proxy": ([[0, 0], [0.5, 0.5], [1, 1]], (0.0, 0.5, 1.0)),
        "random_walk": ([[0, 0], [1, 0], [0, 1]], (0.0, 0.0, 0.0)),
    }
    recordings = {}
    for name, (appearance, worth) in policies.items():
        policy = Partial(_leaning, jnp.array(worth), jnp.array(name != "random_walk"))
        recordings[name] = appearance, replays.record(jax.random.key(3), rules, policy, steps)
    return files.plain(replays.make_replay(rules, recordings))


@pytest.fixture(scope="session")
def results() -> Results:
    return make_results()


@pytest.fixture(scope="session")
def part():
    """(results, modes, seeds, **settings) -> what an experiment of these alone would have found."""
    return _part


def _part(results, modes, seeds, **settings) -> Results:
    manifest = results.manifest
    own = {name: manifest.configuration["modes"][name] for name in modes}
    return Results(
        manifest=with_parts(
            manifest,
            seeds=tuple(seeds),
            configuration={**manifest.configuration, "modes": own, "seed": seeds[0], **settings},
        ),
        modes={
            name: with_parts(mode, runs=tuple(run for run in mode.runs if run.seed in seeds))
            for name, mode in results.modes.items()
            if mode.scripted or name in modes
        },
    )


@pytest.fixture(scope="session")
def smaller():
    """(results, *names) -> results of these modes alone, with nothing made of them."""
    return _smaller


def _smaller(results, *names) -> Results:
    return Results(manifest=results.manifest, modes={name: results.modes[name] for name in names})


@pytest.fixture(scope="session")
def change():
    """(record, **parts) -> the record with other parts, validated."""
    return with_parts


@pytest.fixture(scope="session")
def replay() -> dict[str, Any]:
    return make_replay()
