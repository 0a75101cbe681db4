"""Collapse told before training: every test's score of every run, and how well each tells.

Half of the proxies fix each test's threshold and fit; it is judged on the other half, and on all of
them in another world. Proxies, not runs, are resampled: runs of one proxy are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from omegaconf import OmegaConf

from evidence import stats
from evidence.measurement import Measurement
from evidence.ruling import Ruling, enough_replicates, rule
from evidence.runtime.config import Settings, build, settings_folder
from goodharts_jax import forecast
from goodharts_jax.learnt_results import Forecast, ForecastScore, StudyRun
from goodharts_jax.modes import Mode, foreseen
from goodharts_jax.preferences import gold_reward
from goodharts_jax.proxies import Ground, Prepared
from goodharts_jax.study_settings import EXPERT
from goodharts_jax.thesis import Bound

PROXY = "proxy"
"""The unit that is resampled."""
USUAL = "inaccuracy"
"""What is usually looked at, and what a test must beat."""
_RESAMPLES = 1000

Scores = dict[str, float | None]
Statistic = Callable[["_Ended", np.ndarray], float | None]


class Claim(Bound):
    """A condition on the claimed test."""

    quantity: Literal["auc", "lead", "right", "r_squared", "auc_elsewhere", "right_elsewhere"]


_JUDGED = get_args(Claim.model_fields["quantity"].annotation)


class ForecastThesis(Settings):
    """See `conf/thesis/forecast.yaml`."""

    statement: str
    test: str
    supported: tuple[Claim, ...]
    falsified: tuple[Claim, ...]


def load_thesis() -> ForecastThesis:
    """The claim, stated before the run."""
    text = (settings_folder() / "thesis" / "forecast.yaml").read_text("utf-8")
    return build(ForecastThesis, OmegaConf.create(text), "thesis")


def score_all(ground: Ground, prepared: Mapping[int, Prepared]) -> dict[tuple[str, int], Scores]:
    """What every test says of every proxy of every seed, by name and seed.

    Args:
      ground: what they stand on.
      prepared: proxies by seed.
    """
    small = forecast.small_world(ground.world.view_size)
    basis = forecast.shaping_basis(small)
    item, _ = gold_reward(ground.world)
    gold = forecast.pay_table(small, lambda v, a: forecast.gold_pay(v, a, item))
    say = jax.jit(jax.vmap(foreseen, (None, 0, 0, 0)))
    stages, found = list(ground.study.stages), {}
    for seed, ready in prepared.items():
        for index, (name, proxy) in enumerate(ground.drawn.items()):
            reward = jax.tree.map(lambda x, i=index: x[i], ready.reward)
            table = _table(small, ground.senses.replace(reward=reward), say)  # type: ignore[attr-defined]
            start = stages.index(proxy.start)
            found[name, seed] = _scores(
                small,
                basis,
                table,
                gold,
                ready.said[index, start],
                ready.gold[start],
                ready.said[index, stages.index(EXPERT)],
            )
    return found


def _table(small: forecast.SmallWorld, mode: Mode, say: Callable[..., jax.Array]) -> stats.Array:
    def pay(views: jax.Array, actions: jax.Array) -> jax.Array:
        return say(mode, views, actions, jnp.zeros(actions.shape, jnp.uint32))

    return forecast.pay_table(small, pay)


def _scores(
    small: forecast.SmallWorld,
    basis: stats.Array,
    table: stats.Array,
    gold: stats.Array,
    said: np.ndarray,
    truth: np.ndarray,
    said_of_expert: np.ndarray,
) -> Scores:
    """By name; `said` and `truth` are of the start's steps, f32[segments, steps]."""
    # Rounded, so that what is equal in energy is a tie, whatever the order of its summands.
    pairs = [x.sum(-1)[: len(x) // 2 * 2].reshape(-1, 2).round(3) for x in (said, truth)]
    return {
        "hover": forecast.hover(small, table, said_of_expert, said),
        "hover_from_start": forecast.hover_from_start(small, table, said),
        "temptation": forecast.temptation(small, table, gold),
        "foretold_loss": forecast.foretold_loss(small, table, gold),
        USUAL: forecast.inaccuracy(*pairs),
        "decorrelation": forecast.decorrelation(said.ravel(), truth.ravel()),
        "projected_angle": forecast.projected_angle(basis, table, gold),
        "occupancy_distance": forecast.occupancy_distance(small, table, gold),
    }


def tell(runs: Sequence[StudyRun], elsewhere: Sequence[StudyRun]) -> Forecast:
    """How well each test tells, on proxies and in a world that fixed nothing.

    Args:
      runs: with their scores, of the study's own world.
      elsewhere: likewise, of another; may be empty.
    """
    names = list(dict.fromkeys(run.proxy for run in runs))
    fixed, judged = names[::2], names[1::2]
    fix = _ended([run for run in runs if run.proxy in fixed])
    judge = _ended([run for run in runs if run.proxy in judged])
    other = _ended(elsewhere) if elsewhere else None
    scores = {test: _score(test, fix, judge, other) for test in judge.said}
    return Forecast(
        auc={test: score.auc.value for test, score in scores.items()},
        scores=scores,
        fixed_on=tuple(fixed),
        judged_on=tuple(judged),
        elsewhere=tuple(elsewhere),
    )


@dataclass(frozen=True)
class _Ended:
    """Runs as arrays.

    Attributes:
      proxy: number of each run's proxy. i64[runs].
      said: by test. f64[runs].
      fell: whether it collapsed. bool[runs].
      lost: energy per 1,000 steps that training lost. f64[runs].
    """

    proxy: np.ndarray
    said: Mapping[str, np.ndarray]
    fell: np.ndarray
    lost: np.ndarray


def _ended(runs: Sequence[StudyRun]) -> _Ended:
    names = list(dict.fromkeys(run.proxy for run in runs))
    tests = runs[0].scores if runs else ()
    return _Ended(
        proxy=np.array([names.index(run.proxy) for run in runs], int),
        said={test: np.array([run.scores[test] for run in runs], float) for test in tests},
        fell=np.array([run.collapsed for run in runs], bool),
        lost=np.array([-gain(run) for run in runs], float),
    )


def _score(test: str, fix: _Ended, judge: _Ended, elsewhere: _Ended | None) -> ForecastScore:
    threshold = forecast.best_threshold(fix.said[test], fix.fell)

    def area(on: _Ended, at: np.ndarray, test: str = test) -> float | None:
        return forecast.auc(on.said[test][at], on.fell[at])

    def lead(on: _Ended, at: np.ndarray) -> float | None:
        own, usual = area(on, at), area(on, at, USUAL)
        return None if own is None or usual is None else own - usual

    def right(on: _Ended, at: np.ndarray) -> float | None:
        if threshold is None:
            return None
        return forecast.accuracy_at(threshold, on.said[test][at], on.fell[at])

    def explained(on: _Ended, at: np.ndarray) -> float | None:
        own = on.said[test][at], on.lost[at]
        return forecast.r_squared(fix.said[test], fix.lost, *own)

    return ForecastScore(
        auc=over_proxies(area, judge),
        lead=over_proxies(lead, judge),
        threshold=threshold,
        right=over_proxies(right, judge),
        r_squared=over_proxies(explained, judge),
        auc_elsewhere=None if elsewhere is None else over_proxies(area, elsewhere),
        right_elsewhere=None if elsewhere is None else over_proxies(right, elsewhere),
    )


def over_proxies(statistic: Statistic, on: _Ended) -> Measurement:
    """A statistic of runs, with an interval that resamples whole proxies."""
    groups = [np.flatnonzero(on.proxy == place) for place in np.unique(on.proxy)]
    value = statistic(on, np.arange(len(on.proxy)))
    if value is None:
        return Measurement(None, None, None, len(groups), PROXY, "undefined: all end alike")
    generator, draws = np.random.default_rng(0), np.full(_RESAMPLES, np.nan)
    for draw in range(_RESAMPLES):
        drawn = generator.integers(0, len(groups), len(groups))
        again = statistic(on, np.concatenate([groups[place] for place in drawn]))
        draws[draw] = np.nan if again is None else again
    return stats.from_draws(value, draws, len(groups), PROXY, "cluster bootstrap")


def judge(found: Forecast, thesis: ForecastThesis) -> Ruling:
    """The verdict on the claim."""
    score = found.scores.get(thesis.test)
    needed = enough_replicates(len(found.judged_on), PROXY)
    if score is None:
        return rule(thesis.statement, [needed])

    none = Measurement(None, None, None, 0, PROXY, "not measured")
    measured = {name: getattr(score, name) or none for name in _JUDGED}
    conditions = [
        *(claim.judge("supports", measured) for claim in thesis.supported),
        *(claim.judge("falsifies", measured) for claim in thesis.falsified),
    ]
    named = [c.model_copy(update={"name": f"{thesis.test}: {c.name}"}) for c in conditions]
    return rule(thesis.statement, [needed, *named])


def gain(run: StudyRun) -> float:
    """Energy per 1,000 steps that a run's training gained."""
    gold = np.array(run.curve.gold, float)
    return float(gold[-1] - gold[0])
