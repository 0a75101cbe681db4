"""Labels given anew while a policy trains: on what it has come to do.

A reward model that learnt from a policy's first steps says little of where training leads. So
people are asked again (Christiano et al. 2017, section 2.2): here after each whole part of a
training, on pairs of the current policy's segments; a model is fitted to these and to the first
labels together.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from evidence.runtime import devices, files
from evidence.runtime.devices import fetch, over_runs, shard
from goodharts_jax import preferences, proxies
from goodharts_jax.modes import Mode
from goodharts_jax.networks import ActorCritic
from goodharts_jax.preferences import MOST_PAIRS, Labels
from goodharts_jax.proxies import Ground, Policies, stack
from goodharts_jax.rewards import RewardModel


class Asked(NamedTuple):
    """A run that labels are asked for anew.

    Attributes:
      place: in the population.
      proxy: its name.
      seed: of the run.
      pairs: how many are labelled after each part.
    """

    place: int
    proxy: str
    seed: int
    pairs: int


def refit(
    ground: Ground, policies: Policies, asked: Sequence[Asked], params: Any, part: int
) -> RewardModel:
    """A model for each run that is asked for; leading axis [asked].

    Args:
      ground: what they stand on.
      policies: by stage, leading axis [seeds].
      asked: the runs.
      params: of all policies by now, leading axis [runs].
      part: how many parts of the training are over; draws other segments for each.
    """
    found: dict[int, RewardModel] = {}
    lifted = _refits(ground.settings.plan.network, ground.watched_steps)
    for index in range(len(ground.seeds)):
        if own := _of_seed(ground, asked, index):
            arguments = _arguments(ground, policies, own, index, params, part)
            models = fetch(lifted(*arguments), len(own))
            for i, one in enumerate(own):
                found[one.place] = jax.tree.map(lambda x, i=i: x[i, 0], models)
    return stack([found[one.place] for one in asked])


def compile_ahead(ground: Ground, policies: Policies, asked: Sequence[Asked], params: Any) -> None:
    """Compile what `refit` runs, such as in another thread while policies train."""
    index = next(i for i in range(len(ground.seeds)) if _of_seed(ground, asked, i))
    own = _of_seed(ground, asked, index)
    lifted = _refits(ground.settings.plan.network, ground.watched_steps)
    lifted.lower(*_arguments(ground, policies, own, index, params, 1)).compile()


def _of_seed(ground: Ground, asked: Sequence[Asked], index: int) -> list[Asked]:
    return [one for one in asked if one.seed == ground.seeds[index]]


def _arguments(
    ground: Ground, policies: Policies, own: Sequence[Asked], index: int, params: Any, part: int
) -> tuple[Any, ...]:
    """Of the program that fits the models of one seed's runs."""
    seed = ground.seeds[index]
    watched = {name: jax.tree.map(lambda x: x[index], stage) for name, stage in policies.items()}
    pool = proxies.watch_stages(ground, watched, seed)
    labels = stack([_labels(ground, list(policies), one.proxy, one.pairs) for one in own])
    key = jax.random.fold_in(jax.random.key(seed), 1000 + part)
    places = np.array([one.place for one in own])
    keys = jax.vmap(partial(jax.random.fold_in, key))(jnp.asarray(places))
    now = jax.tree.map(lambda x: x[places], params)
    shared = (
        ground.world,
        ground.senses,
        pool,
        jnp.int32(ground.settings.budget.reward_model_steps),
    )
    return (shared, *shard((labels, now, keys)))


def _labels(ground: Ground, stages: Sequence[str], name: str, pairs: int) -> Labels:
    """The first labels and the new ones; of a table there are no first ones."""
    proxy = ground.drawn[name]
    first = proxies.labels_of(proxy, stages)
    before = proxy.pairs if proxy.is_learnt else 0
    share = np.float32(pairs / (before + pairs))
    watched = np.append(np.asarray(first.watched) * (1 - share), share)
    return replace(
        first, pairs=jnp.int32(min(MOST_PAIRS, before + pairs)), watched=jnp.asarray(watched)
    )


@cache
def _refits(network: ActorCritic, steps: int) -> devices.Lifted:
    def one(shared: Any, labels: Labels, params: Any, key: chex.PRNGKey) -> RewardModel:
        world, mode, pool, descents = shared
        watch_key, fit_key = jax.random.split(key)
        alone = jax.tree.map(lambda x: x[None], params)
        now = preferences.watch_policies(network, world, mode, alone, watch_key, steps)
        both = jax.tree.map(lambda *parts: jnp.concatenate(parts), pool, now)
        return preferences.fit(mode, both, labels, fit_key, 1, descents).model

    return over_runs(one)


def apply(modes: Mode, asked: Sequence[Asked], models: RewardModel) -> Mode:
    """Modes in which each asked run is rewarded by its new model alone; leading axis [runs]."""
    reward = modes.reward
    at = np.array([one.place for one in asked])

    def put(whole: Any, values: Any) -> Any:
        changed = np.array(whole)
        changed[at] = values
        return changed

    def first(whole: Any, model: Any) -> Any:
        changed = np.array(whole)
        changed[at, 0] = model
        return changed

    alone = np.arange(np.asarray(reward.members).shape[1]) == 0
    reward = replace(
        reward,
        item=put(reward.item, 0),
        step=put(reward.step, 0),
        death=put(reward.death, 0),
        model=jax.tree.map(first, reward.model, models),
        members=put(reward.members, alone),
    )
    return modes.replace(reward=reward)  # type: ignore[attr-defined]


def save(path: Path, models: RewardModel) -> None:
    """Keep models, so that an interrupted training goes on with them."""
    leaves: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in vars(models).items()}
    files.write_by(path, partial(np.savez, **leaves))


def load(path: Path) -> RewardModel:
    """What `save` kept.

    Raises:
      ValueError: it can't be read.
    """
    try:
        with np.load(path) as kept:
            return RewardModel(**kept)
    except (EOFError, TypeError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: {error}; start afresh in another folder") from None
