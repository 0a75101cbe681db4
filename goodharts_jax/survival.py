"""Continuous survival, as the evaluation protocol has it: no episodes, every death counted.

The dead are reborn at once. Lives are counted, never listed: what a run keeps are tables of fixed
size, accumulated inside the scan, from which rates, Kaplan-Meier curves and both efficiencies
follow exactly, however many steps were taken. Device counts are int32 and cover one call of
`rollout`; the host adds them up in int64 (`add`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from evidence import lifetimes
from goodharts_jax import world as physics
from goodharts_jax.modes import Mode
from goodharts_jax.policies import Policy
from goodharts_jax.results import SurvivalCurve, Totals
from goodharts_jax.rollouts import chances, sample
from goodharts_jax.world import ENERGY_UNIT, FOOD, POISON, State, World

FIRST, ALL = 0, 1
NUM_BINS = 101


@struct.dataclass
class Lives:
    """Worlds under evaluation, with what each agent has eaten since it was born.

    Attributes:
      worlds: State with a leading axis [num_worlds].
      eaten: int32[num_worlds, NUM_KINDS].
      is_first: whether the world is still in its first life. bool[num_worlds].
    """

    worlds: State
    eaten: jax.Array
    is_first: jax.Array


@struct.dataclass
class Tally:
    """Counts, all of which add up.

    Attributes:
      deaths_by_age: of FIRST lives and of ALL lives. int[2, oldest + 1].
      deaths_by_poison: deaths with poison as the last meal. int[].
      lives_by_efficiency: finished lives that ate, in bins of one percent. int[NUM_BINS].
      efficiency: summed over finished lives that ate, by world. float[num_worlds].
      barren: finished lives that ate nothing, by world. int[num_worlds].
      deaths: by world. int[num_worlds].
      eaten: by world and kind; EMPTY counts the steps without a meal. int[num_worlds, NUM_KINDS].
    """

    deaths_by_age: Any
    deaths_by_poison: Any
    lives_by_efficiency: Any
    efficiency: Any
    barren: Any
    deaths: Any
    eaten: Any


def reset(world: World, num_worlds: int, key: chex.PRNGKey) -> Lives:
    """Newborn agents in fresh worlds."""
    keys = jax.random.split(key, num_worlds)
    return Lives(
        worlds=jax.vmap(physics.reset, (None, 0))(world, keys),
        eaten=jnp.zeros((num_worlds, physics.NUM_KINDS), jnp.int32),
        is_first=jnp.ones((num_worlds,), bool),
    )


def rollout(
    world: World,
    policy: Policy,
    lives: Lives,
    key: chex.PRNGKey,
    num_steps: int,
    oldest: int,
) -> tuple[Lives, Tally]:
    """Let all agents live on for `num_steps` steps.

    Args:
      world: the rules.
      policy: for one agent.
      lives: where they are.
      key: consumed.
      num_steps: static.
      oldest: greatest age that any life can have reached at the end; static.
    """
    num_worlds = lives.is_first.shape[0]

    def step(carry: tuple[Lives, Tally], key: chex.PRNGKey):
        lives, tally = carry
        choice, noise_word, step_keys = chances(key, num_worlds)
        view = jax.vmap(physics.view, (None, 0))(world, lives.worlds)
        logits = jax.vmap(policy)(view, noise_word).logits
        worlds, event = jax.vmap(physics.step, (None, 0, 0, 0))(
            world,
            lives.worlds,
            jax.vmap(sample)(logits, choice),
            step_keys,
        )
        meal = (event.eaten[:, None] == jnp.arange(physics.NUM_KINDS)).astype(jnp.int32)
        eaten, died = lives.eaten + meal, event.died
        food, poison = eaten[:, FOOD], eaten[:, POISON]
        efficiency = food / jnp.maximum(food + poison, 1)
        ate = food + poison > 0
        percent = jnp.round(100 * efficiency).astype(jnp.int32)
        tally = Tally(
            deaths_by_age=tally.deaths_by_age.at[FIRST, event.age]
            .add(died & lives.is_first)
            .at[ALL, event.age]
            .add(died),
            deaths_by_poison=tally.deaths_by_poison + jnp.sum(died & (event.eaten == POISON)),
            lives_by_efficiency=tally.lives_by_efficiency.at[percent].add(died & ate),
            efficiency=tally.efficiency + jnp.where(died & ate, efficiency, 0.0),
            barren=tally.barren + (died & ~ate),
            deaths=tally.deaths + died,
            eaten=tally.eaten + meal,
        )
        lives = Lives(worlds, jnp.where(died[:, None], 0, eaten), lives.is_first & ~died)
        return (lives, tally), None

    keys = jax.random.split(key, num_steps)
    return jax.lax.scan(step, (lives, empty_tally(num_worlds, oldest)), keys)[0]


def empty_tally(num_worlds: int, oldest: int) -> Tally:
    """A tally of nothing."""

    def zeros(*shape: int) -> jax.Array:
        return jnp.zeros(shape, jnp.int32)

    return Tally(
        deaths_by_age=zeros(2, oldest + 1),
        deaths_by_poison=zeros(),
        lives_by_efficiency=zeros(NUM_BINS),
        efficiency=jnp.zeros((num_worlds,), jnp.float32),
        barren=zeros(num_worlds),
        deaths=zeros(num_worlds),
        eaten=zeros(num_worlds, physics.NUM_KINDS),
    )


# ---- on the host --------------------------------------------------------------------------------


@dataclass(frozen=True)
class LifeTable:
    """All that is known of a group of lives after it was followed, as NumPy arrays.

    Attributes:
      tally: summed over all calls of `rollout`, int64 and float64.
      alive_by_age: of FIRST lives and of ALL lives, at the end. int64[2, oldest + 1].
      items: of each kind in each world. int64[num_worlds, NUM_KINDS].
      steps: of each world.
    """

    tally: Tally
    alive_by_age: np.ndarray
    items: np.ndarray
    steps: int


def add(a: Tally | None, b: Tally) -> Tally:
    """The sum of two tallies in 64 bits."""

    def widen(x: Any) -> np.ndarray:
        x = np.asarray(x)
        return x.astype(np.int64 if x.dtype.kind in "iu" else np.float64)

    wide = jax.tree.map(widen, b)
    return wide if a is None else jax.tree.map(np.add, a, wide)


def finish(tally: Tally, lives: Lives, steps: int) -> LifeTable:
    """The life table of one group of worlds that has been followed for `steps` steps."""
    age, is_first = np.asarray(lives.worlds.age), np.asarray(lives.is_first)
    length = tally.deaths_by_age.shape[1]
    alive = [np.bincount(ages, minlength=length) for ages in (age[is_first], age)]
    return LifeTable(tally, np.stack(alive), np.asarray(lives.worlds.items, np.int64), steps)


def pool(tables: Sequence[LifeTable]) -> LifeTable:
    """Several groups of worlds that were followed for as long, as one."""
    by_world = {"efficiency", "barren", "deaths", "eaten"}
    tallies = [table.tally for table in tables]
    fields = {
        name: np.concatenate([getattr(t, name) for t in tallies])
        if name in by_world
        else np.sum([getattr(t, name) for t in tallies], axis=0)
        for name in Tally.__dataclass_fields__
    }
    return LifeTable(
        tally=Tally(**fields),
        alive_by_age=np.sum([table.alive_by_age for table in tables], axis=0),
        items=np.concatenate([table.items for table in tables]),
        steps=tables[0].steps,
    )


def metrics(
    table: LifeTable,
    world: World,
    horizon: int,
    proxy: Mapping[str, float],
    mode: Mode | None,
) -> Totals:
    """The numbers of a group of lives; a ratio with total 0 is None.

    Args:
      table: of one run, or of all runs of a mode pooled.
      world: the rules it lived under.
      horizon: of the restricted mean, in steps; at most those the lives were followed for.
      proxy: interestingness of "food" and "poison", the same for every row of a table.
      mode: what the policy was rewarded for; None for a scripted one.
    """
    tally = table.tally
    steps = table.steps * len(table.items)
    deaths = int(tally.deaths.sum())
    _, food, poison = (int(n) for n in tally.eaten.sum(axis=0))
    barren, efficiency = int(tally.barren.sum()), float(tally.efficiency.sum())
    ages = np.arange(tally.deaths_by_age.shape[1])
    curve = lifetimes.kaplan_meier(tally.deaths_by_age[FIRST], table.alive_by_age[FIRST])
    _, food_energy, poison_energy = (float(e) * ENERGY_UNIT for e in np.asarray(world.energy))
    move_cost = float(world.move_cost) * ENERGY_UNIT
    own = None
    if mode is not None:
        _, food_reward, poison_reward = (float(reward) for reward in np.asarray(mode.reward.item))
        own = food_reward * food + poison_reward * poison
        own += float(mode.reward.step) * steps + float(mode.reward.death) * deaths

    def per_1k(total: float | None) -> float | None:
        return None if total is None else 1000 * total / steps

    return Totals(
        survival_mean=_ratio(float(ages @ tally.deaths_by_age[ALL]), deaths),
        survival_median=lifetimes.median_survival(curve),
        survival_restricted_mean=lifetimes.restricted_mean(curve, horizon).value,
        deaths_per_1k_steps=per_1k(deaths),
        deaths_by_poison_share=_ratio(int(tally.deaths_by_poison), deaths),
        food_per_1k_steps=per_1k(food),
        poison_per_1k_steps=per_1k(poison),
        energy_per_1k_steps=per_1k(food_energy * food + poison_energy * poison - move_cost * steps),
        proxy_return_per_1k_steps=per_1k(proxy["food"] * food + proxy["poison"] * poison),
        own_return_per_1k_steps=per_1k(own),
        overall_efficiency=_ratio(food, food + poison),
        efficiency_mean=_ratio(efficiency + 0.5 * barren, deaths),
        efficiency_mean_eaters=_ratio(efficiency, deaths - barren),
        selectivity=_selectivity(table),
        total_deaths=deaths,
        total_steps=steps,
    )


def first_lives(table: LifeTable) -> tuple[np.ndarray, np.ndarray]:
    """First lives by age: those that ended, and those still going on. int64[oldest + 1] each."""
    return table.tally.deaths_by_age[FIRST], table.alive_by_age[FIRST]


class Details(NamedTuple):
    """What the figures of one run are drawn from.

    Attributes:
      survival: of first lives.
      efficiency_histogram: finished lives that ate, in bins of one percent.
      deaths_by_poison: deaths with poison as the last meal.
      deaths_by_hunger: all others.
    """

    survival: SurvivalCurve
    efficiency_histogram: list[int]
    deaths_by_poison: int
    deaths_by_hunger: int


def details(table: LifeTable) -> Details:
    """What the figures of one run are drawn from."""
    tally = table.tally
    curve = lifetimes.kaplan_meier(tally.deaths_by_age[FIRST], table.alive_by_age[FIRST])
    by_poison = int(tally.deaths_by_poison)
    # A step function is whole in the ages at which it steps.
    steps = np.flatnonzero(np.diff(curve.survival, prepend=np.nan) != 0)
    kept = np.union1d(steps, len(curve.survival) - 1)
    if len(kept) > 400:
        kept = np.unique(np.geomspace(1, len(curve.survival), 400).astype(int) - 1)
    return Details(
        survival=SurvivalCurve(
            ages=tuple(curve.age[kept].tolist()),
            survival=tuple(np.round(curve.survival[kept], 6).tolist()),
        ),
        efficiency_histogram=tally.lives_by_efficiency.tolist(),
        deaths_by_poison=by_poison,
        deaths_by_hunger=int(tally.deaths.sum()) - by_poison,
    )


def _selectivity(table: LifeTable) -> float | None:
    """Manly's alpha: each kind's meals over how often it lay there, food's share of the sum."""
    available = table.items.sum(axis=0) * table.steps
    eaten = table.tally.eaten.sum(axis=0)
    food, poison = (_ratio(float(eaten[k]), float(available[k])) for k in (FOOD, POISON))
    return None if food is None or poison is None else _ratio(food, food + poison)


def _ratio(part: float, total: float) -> float | None:
    return part / total if total else None
