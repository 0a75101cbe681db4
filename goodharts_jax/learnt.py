"""Studies of proxies: who is watched, what is learnt of it, what training makes of it.

All proxies, remedies and seeds are one population. A run's proxy is made from its own seed: from
segments of policies that a training on the truth went through with that seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console

from evidence.runtime import devices
from evidence.runtime.devices import fetch, over_runs, shard
from goodharts_jax import ppo, preferences, training
from goodharts_jax.live import observing
from goodharts_jax.modes import Mode, foreseen, make_mode
from goodharts_jax.preferences import SCALE, Labels, Pool, gold_reward, told
from goodharts_jax.rewards import Guard, Reward, RewardModel, by_model, empty_reward
from goodharts_jax.settings import Experiment
from goodharts_jax.study_settings import MIXED, LearntSettings, ProxySettings
from goodharts_jax.training import Trained
from goodharts_jax.world import World

_LOOKS = 4
"""Whole parts of a training after which it is looked at; before the first it is looked at often."""
_MEASURED = 1024
"""Segments of each policy that proxies are compared with the truth on."""
_REFERENCE = 4096
"""Steps that a discriminator compares a policy's with."""


@dataclass(frozen=True)
class Ground:
    """What the proxies of a study stand on, in one world.

    Attributes:
      settings: of the experiment.
      world: the rules.
      seeds: of the runs of each proxy.
      folder: of what may be resumed.
      console: where progress is shown.
    """

    settings: Experiment
    world: World
    seeds: Sequence[int]
    folder: Path
    console: Console

    @property
    def study(self) -> LearntSettings:
        """Settings of the study."""
        assert isinstance(self.settings.study, LearntSettings)
        return self.settings.study

    @property
    def peaceful(self) -> World:
        """The rules while nobody starves."""
        return self.world.replace(mortal=jnp.array(False))  # type: ignore[attr-defined]

    @property
    def senses(self) -> Mode:
        """What agents and reward models perceive; its reward is the truth."""
        item, step = gold_reward(self.world)
        mode = make_mode(self.study.food, self.study.poison, 0, 0, mortal=False)
        reward = replace(empty_reward(), item=item, step=step)
        return mode.replace(reward=reward)  # type: ignore[attr-defined]

    @property
    def chunk_updates(self) -> int:
        """Updates between two looks."""
        return max(1, round(self.study.train_share * self.settings.num_updates) // _LOOKS)


class Prepared(NamedTuple):
    """The proxies of one seed, before any training on them.

    Attributes:
      reward: Reward with a leading axis [proxies].
      accuracy: of the learnt ones, NaN of others. float32[proxies].
      said: what each says of steps. float32[proxies, stages, segments, SEGMENT].
      gold: what they are truly worth. float32[stages, segments, SEGMENT].
      reference: (view, action) of steps of each stage, uint8[stages, B, V, V], int32[stages, B].
    """

    reward: Reward
    accuracy: np.ndarray
    said: np.ndarray
    gold: np.ndarray
    reference: tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
      proxy: its name.
      seed: of the run.
      remedy: its name; None without.
      strength: which of its strengths.
      guard: its numbers, without the policy that the run begins with.
      mean_of: how many reward models count.
      reseed: draws other random numbers for the training.
    """

    proxy: str
    seed: int
    remedy: str | None = None
    strength: int = 0
    guard: Guard | None = None
    mean_of: int = 1
    reseed: int = 0


# ---- who is watched -----------------------------------------------------------------------------


def stages(ground: Ground) -> dict[str, Any]:
    """Parameters of the policies that a training on the truth goes through, by stage; leading axis
    [seeds].
    """
    plan, number = ground.settings.plan, len(ground.seeds)

    def go_on(shared: Any, mode: Mode, state: ppo.TrainState) -> ppo.TrainState:
        world, hyper, updates = shared

        def update(_: jax.Array, state: ppo.TrainState) -> ppo.TrainState:
            return ppo.advance(plan, world, hyper, mode, state, 1)[0]

        return jax.lax.fori_loop(0, updates, update, state)

    train = over_runs(go_on, donate=(2,))
    keys = jax.vmap(jax.random.key)(jnp.array(ground.seeds, jnp.uint32))
    modes, keys = shard((_repeat(ground.senses, number), keys))
    states = over_runs(lambda world, key: ppo.start(plan, world, key))(ground.world, keys)
    found, done = dict[str, Any](), 0
    for name, updates in sorted(ground.study.stages.items(), key=lambda item: item[1]):
        # A training shorter than a stage ends with it.
        goal = min(updates, ground.settings.num_updates)
        count = np.asarray(goal - done, np.int32)
        states = train((ground.world, ground.settings.hyper, count), modes, states)
        found[name], done = fetch(states.params, number), goal
    return found


# ---- what is learnt of them ---------------------------------------------------------------------


def prepare(ground: Ground, policies: Mapping[str, Any], seed: int) -> Prepared:
    """The proxies of one seed: alike each time, so that nothing of them need be kept.

    Args:
      ground: what they stand on.
      policies: by stage, without an axis of seeds.
      seed: of all that is drawn.
    """
    proxies, key = ground.study.drawn, jax.random.key(seed)
    together = jax.tree.map(lambda *leaves: np.stack(leaves), *policies.values())
    pool = preferences.watch_policies(
        ground.settings.plan.network,
        ground.world,
        ground.senses,
        together,
        jax.random.fold_in(key, 1),
        min(preferences.MOST_STEPS, ground.settings.budget.steps_per_world),
    )
    reward, accuracy = make_rewards(ground, list(policies), pool, jax.random.fold_in(key, 2))
    part = jax.tree.map(lambda x: x[:, :_MEASURED], pool)
    said = _say_all((ground.senses, part), shard(reward))
    flat = jax.tree.map(lambda x: x.reshape(len(policies), -1, *x.shape[3:])[:, :_REFERENCE], pool)
    return Prepared(
        reward=reward,
        accuracy=accuracy,
        said=fetch(said, len(proxies)),
        gold=np.asarray(part.gold),
        reference=(np.asarray(flat.view), np.asarray(flat.action)),
    )


def _say(shared: tuple[Mode, Pool], reward: Reward) -> jax.Array:
    """What a proxy says of every step. float32, in the shape of `pool.action`."""
    mode, pool = shared
    say = foreseen
    for _ in pool.action.shape:
        say = jax.vmap(say, (None, 0, 0, 0))
    return say(replace(mode, reward=reward), pool.view, pool.action, pool.noise_word)


_say_all = over_runs(_say)


def make_rewards(
    ground: Ground, names: Sequence[str], pool: Pool, key: chex.PRNGKey
) -> tuple[Reward, np.ndarray]:
    """Every proxy as a reward, with a leading axis [proxies], and the learnt ones' accuracy.

    Args:
      ground: what they stand on.
      names: of the stages in the pool.
      pool: segments of their policies.
      key: consumed; each proxy's own is made from it and from its name.
    """
    proxies, members = ground.study.drawn, ground.study.members
    keys = {name: jax.random.fold_in(key, zlib.crc32(name.encode())) for name in proxies}
    learnt = {name: proxy for name, proxy in proxies.items() if proxy.is_learnt}
    drawn = {name: proxy for name, proxy in proxies.items() if proxy.correlation is not None}
    blank = _blank(ground, members)
    rewards = {
        name: replace(blank, item=jnp.array([0.0, *proxy.item], jnp.float32))
        for name, proxy in proxies.items()
        if proxy.item is not None
    }
    accuracy = dict.fromkeys(proxies, np.float32(np.nan))
    if learnt:
        labels = _stack([_labels(proxy, names) for proxy in learnt.values()])
        shared = (ground.senses, pool, jnp.int32(ground.settings.budget.reward_model_steps))
        fitted = _lifted(_fit, members)(shared, *shard((labels, _keys(keys, learnt))))
        fitted = fetch(fitted, len(learnt))
        for i, name in enumerate(learnt):
            model, accuracy[name] = jax.tree.map(lambda x, i=i: x[i], fitted)
            rewards[name] = replace(blank, model=model)
    if drawn:
        at = jnp.array([names.index(proxy.start) for proxy in drawn.values()])
        wanted = jnp.array([proxy.correlation for proxy in drawn.values()], jnp.float32)
        part = jax.tree.map(lambda x: x[:, :_MEASURED], pool)
        made = _lifted(_draw, members)(
            (ground.senses, part), *shard((at, wanted, _keys(keys, drawn)))
        )
        made = fetch(made, len(drawn))
        for i, name in enumerate(drawn):
            rewards[name] = jax.tree.map(lambda x, i=i: x[i], made)
    return _stack([rewards[name] for name in proxies]), np.array(list(accuracy.values()))


@cache
def _lifted(function: Callable[..., Any], members: int) -> devices.Lifted:
    """Over runs; made once, for a program that is made for each seed is traced for each seed."""
    return over_runs(partial(function, members))


def _fit(members: int, shared: Any, labels: Labels, key: chex.PRNGKey) -> preferences.Fitted:
    mode, pool, descents = shared
    return preferences.fit(mode, pool, labels, key, members, descents)


def _blank(ground: Ground, members: int) -> Reward:
    """No reward, with room for a model."""
    view = jnp.zeros((ground.world.view_size,) * 2, jnp.uint8)
    at_once = Pool(view, jnp.uint32(0), jnp.int32(0), jnp.float32(0))
    inputs = told(ground.senses, at_once).shape[0]
    shapes = {"kernel": (inputs, preferences.WIDEST), "bias": (preferences.WIDEST,)}
    shapes |= {"out": (preferences.WIDEST,), "mean": (), "scale": ()}
    model = RewardModel(**{name: jnp.zeros((members, *shape)) for name, shape in shapes.items()})
    first = (jnp.arange(members) == 0).astype(jnp.float32)
    return replace(empty_reward(), model=model, members=first)


def _labels(proxy: ProxySettings, names: Sequence[str]) -> Labels:
    watched = np.array([name == proxy.watched for name in names], np.float32)
    if proxy.watched == MIXED:
        watched = np.full(len(names), 1 / len(names), np.float32)
    return Labels(
        pairs=jnp.int32(proxy.pairs),
        width=jnp.int32(proxy.width),
        noise=jnp.float32(proxy.label_noise),
        temperature=jnp.float32(proxy.temperature),
        watched=jnp.asarray(watched),
    )


def _draw(
    members: int,
    shared: tuple[Mode, Pool],
    at: jax.Array,
    correlation: jax.Array,
    key: chex.PRNGKey,
) -> Reward:
    """A reward drawn at random with the wanted correlation with the truth, exactly, over the steps
    of the policy `at` a place in the pool: the truth and a random network's residual from it. The
    mode is rewarded with the truth.
    """
    mode, pool = shared
    own = jax.tree.map(lambda x: x[at], pool)
    seen, truth = told(mode, own), own.gold - own.gold.mean()
    kernel_key, bias_key, out_key = jax.random.split(key, 3)
    width = preferences.WIDEST
    model = RewardModel(
        kernel=jax.random.normal(kernel_key, (seen.shape[-1], width)),
        bias=jax.random.normal(bias_key, (width,)),
        out=jax.random.normal(out_key, (width,)),
        mean=jnp.zeros(()),
        scale=jnp.ones(()),
    )
    raw = by_model(model, seen)
    slope = jnp.mean(raw * truth) / jnp.mean(truth**2)
    rest = jnp.std(raw - slope * truth)
    by_network = SCALE * jnp.sqrt(1 - correlation**2) / rest
    by_truth = SCALE * correlation / jnp.std(truth) - by_network * slope
    model = replace(model, mean=raw.mean(), scale=by_network)
    return replace(
        empty_reward(),
        item=by_truth * mode.reward.item,
        step=by_truth * mode.reward.step,
        model=_repeat(model, members),
        members=(jnp.arange(members) == 0).astype(jnp.float32),
    )


# ---- what training makes of it ------------------------------------------------------------------


def train(
    ground: Ground,
    policies: Mapping[str, Any],
    prepared: Mapping[int, Prepared],
    jobs: Sequence[Job],
    folder: Path,
) -> Trained:
    """All runs as one population; goes on where it was interrupted.

    Args:
      ground: what they stand on.
      policies: by stage, leading axis [seeds].
      prepared: proxies by seed.
      jobs: the runs.
      folder: of checkpoints.

    Raises:
      ValueError: they don't fit into memory.
    """
    settings = ground.settings
    modes, initial, keys = _begun(ground, policies, prepared, jobs)
    needed = training.memory_needed(settings.plan, ground.world, len(jobs))
    if needed > (free := devices.memory_available()):
        raise ValueError(
            f"{len(jobs)} runs take about {needed / 2**20:,.0f} MiB, {free / 2**20:,.0f} are free; "
            "lower runs, or give fewer proxies or remedies"
        )
    labels = [(f"{job.proxy} {job.remedy or ''}".strip(), job.seed) for job in jobs]
    updates = ground.chunk_updates * _LOOKS
    with observing(
        labels, settings.plan.steps_per_update, settings, folder, ground.console, updates
    ) as observe:
        return training.train(
            settings.plan,
            ground.world,
            replace(settings.hyper, num_updates=jnp.float32(updates)),
            modes,
            keys,
            num_updates=updates,
            chunk_updates=ground.chunk_updates,
            initial=initial,
            folder=folder / "checkpoints",
            watch_world=ground.peaceful,
            observe=observe,
        )


def _begun(
    ground: Ground,
    policies: Mapping[str, Any],
    prepared: Mapping[int, Prepared],
    jobs: Sequence[Job],
) -> tuple[Mode, Any, jax.Array]:
    """What all runs are rewarded with, their first policies and their keys; leading axis [runs]."""
    names, place = list(ground.study.drawn), {seed: i for i, seed in enumerate(ground.seeds)}
    guards = [job.guard for job in jobs if job.guard is not None]
    anchored = any(guard.kl for guard in guards)
    discriminated = any(guard.occupancy_kl or guard.occupancy_chi for guard in guards)
    modes, initial, keys = [], [], []
    for job in jobs:
        ready, start = prepared[job.seed], ground.study.drawn[job.proxy].start
        own = jax.tree.map(lambda x, job=job: x[place[job.seed]], policies[start])
        reward = jax.tree.map(lambda x, job=job: x[names.index(job.proxy)], ready.reward)
        if job.guard is not None:
            at = list(policies).index(start)
            view, action = (x[at] for x in ready.reference)
            guard = replace(
                job.guard,
                anchor=own if anchored else None,
                reference=(view, action) if discriminated else None,
            )
            counts = np.arange(ground.study.members) < job.mean_of
            members = (counts / job.mean_of).astype(np.float32)
            reward = replace(reward, guard=guard, members=members)
        modes.append(replace(ground.senses, reward=reward))
        initial.append(own)
        keys.append(jax.random.fold_in(jax.random.key(job.seed), 1 + job.reseed))
    return _stack(modes), _stack(initial), jnp.stack(keys)


def _keys(keys: Mapping[str, chex.PRNGKey], names: Mapping[str, Any]) -> jax.Array:
    return jnp.stack([keys[name] for name in names])


def _repeat(tree: Any, count: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x))), tree)


def _stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)
