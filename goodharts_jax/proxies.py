"""The proxies of a study: tables, reward models that learn from labels, rewards drawn at random.

They are made from a seed: from segments of policies that a training on the truth went through with
that seed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from goodharts_jax import preferences
from goodharts_jax.modes import Mode, foreseen, make_mode
from goodharts_jax.phase import appearances
from goodharts_jax.preferences import SCALE, Labels, Pool, gold_reward, told
from goodharts_jax.rewards import Reward, RewardModel, by_model, empty_reward
from goodharts_jax.settings import Experiment
from goodharts_jax.study_settings import MIXED, LearntSettings, ProxySettings
from goodharts_jax.world import World

Policies = Mapping[str, chex.ArrayTree]
"""Parameters by stage."""
LOOKS = 4
"""Whole parts of a training after which it is looked at; before the first it is looked at often."""
_MEASURED = 1024
"""Segments of each policy that proxies are compared with the truth on, of those held out."""
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
      perceived: the name of the senses; None for the study's own.
    """

    settings: Experiment
    world: World
    seeds: Sequence[int]
    folder: Path
    console: Console
    perceived: str | None = None

    @property
    def parts(self) -> list[Ground]:
        """The same for each of the senses that proxies have: policies of one can't begin another's
        training, nor can segments of one be labelled for it.
        """
        every = dict.fromkeys(proxy.senses for proxy in self.study.drawn.values())
        return [
            replace(
                self, perceived=name, folder=self.folder / f"senses_{name}" if name else self.folder
            )
            for name in every
        ]

    @property
    def elsewhere(self) -> Ground | None:
        """The same in the other world that a study is judged in; None without one."""
        settings = self.settings
        if not settings.budget.other_world or settings.evaluation_world == settings.world:
            return None
        return replace(
            self,
            world=settings.evaluation_world.build(),
            seeds=self.seeds[: self.study.other_runs],
            folder=self.folder / "elsewhere",
        )

    @property
    def drawn(self) -> dict[str, ProxySettings]:
        """Every proxy of these senses by name."""
        every = self.study.drawn.items()
        return {name: proxy for name, proxy in every if proxy.senses == self.perceived}

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
        looks, noise = (self.study.food, self.study.poison), None
        if self.perceived is not None:
            own = self.study.senses[self.perceived]
            looks, noise = appearances(own.distance), own.noise
        mode = make_mode(*looks, 0, 0, mortal=False, noise=noise)
        reward = replace(empty_reward(), item=item, step=step)
        return mode.replace(reward=reward)  # type: ignore[attr-defined]

    @property
    def watched_steps(self) -> int:
        """Steps of each world that segments are taken from."""
        return min(preferences.MOST_STEPS, self.settings.budget.steps_per_world)

    @property
    def chunk_updates(self) -> int:
        """Updates between two looks."""
        return max(1, round(self.study.train_share * self.settings.num_updates) // LOOKS)


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


def prepare(ground: Ground, policies: Policies, seed: int) -> Prepared:
    """The proxies of one seed: alike each time, so that nothing of them need be kept.

    Args:
      ground: what they stand on.
      policies: by stage, without an axis of seeds.
      seed: of all that is drawn.
    """
    proxies, pool = ground.drawn, watch_stages(ground, policies, seed)
    key = jax.random.fold_in(jax.random.key(seed), 2)
    reward, accuracy = make_rewards(ground, list(policies), pool, key)
    part = _measured(pool)
    said = _say_all((ground.senses, part), shard(reward))
    flat = _reference(pool, ground.settings.plan.episode_length)
    return Prepared(
        reward=reward,
        accuracy=accuracy,
        said=fetch(said, len(proxies)),
        gold=np.asarray(part.gold),
        reference=(np.asarray(flat.view), np.asarray(flat.action)),
    )


def _measured(pool: Pool) -> Pool:
    """Segments of the worlds held out, at all times. Leading axes [stages, segments]."""
    return _spread(pool, preferences.HELD_OUT, _MEASURED, pool.gold.shape[1] // preferences.WORLDS)


def _reference(pool: Pool, oldest: int) -> Pool:
    """Steps of all worlds, none older than a training's get. Leading axes [stages, steps]."""
    of_steps = jax.tree.map(lambda x: x.reshape(len(x), -1, *x.shape[3:]), pool)
    return _spread(of_steps, preferences.WORLDS, _REFERENCE, oldest)


def _spread(pool: Pool, worlds: int, number: int, slots: int) -> Pool:
    """As many of the first slots of each of the first worlds, evenly spread, and beginning with
    another one from world to world: `number` in all, or all that there are. Neighbours are of
    different worlds.
    """

    def some(x: jax.Array) -> jax.Array:
        x = x.reshape(len(x), preferences.WORLDS, -1, *x.shape[2:])
        last = min(slots, x.shape[2])
        each = min(number // worlds, last)
        world = np.arange(worlds)
        at = (np.arange(each)[:, None] * (last // each) + world) % last
        return x[:, world, at].reshape(len(x), worlds * each, *x.shape[3:])

    return jax.tree.map(some, pool)


def watch_stages(ground: Ground, policies: Policies, seed: int) -> Pool:
    """Segments of every stage, of one seed."""
    together = jax.tree.map(lambda *leaves: np.stack(leaves), *policies.values())
    key = jax.random.fold_in(jax.random.key(seed), 1)
    network = ground.settings.plan.network
    return preferences.watch_policies(
        network, ground.world, ground.senses, together, key, ground.watched_steps
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
    proxies, members = ground.drawn, ground.study.members
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
        labels = stack([labels_of(proxy, names) for proxy in learnt.values()])
        shared = (ground.senses, pool, jnp.int32(ground.settings.budget.reward_model_steps))
        fitted = _lifted(_fit, members)(shared, *shard((labels, _keys(keys, learnt))))
        fitted = fetch(fitted, len(learnt))
        for i, name in enumerate(learnt):
            model, accuracy[name] = jax.tree.map(lambda x, i=i: x[i], fitted)
            rewards[name] = replace(blank, model=model)
    if drawn:
        at = jnp.array([names.index(proxy.start) for proxy in drawn.values()])
        wanted = jnp.array([proxy.correlation for proxy in drawn.values()], jnp.float32)
        part = _measured(pool)
        made = _lifted(_draw, members)(
            (ground.senses, part), *shard((at, wanted, _keys(keys, drawn)))
        )
        made = fetch(made, len(drawn))
        for i, name in enumerate(drawn):
            rewards[name] = jax.tree.map(lambda x, i=i: x[i], made)
    return stack([rewards[name] for name in proxies]), np.array(list(accuracy.values()))


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


def labels_of(proxy: ProxySettings, names: Sequence[str]) -> Labels:
    """How a proxy's labels come about, where the pool holds these stages."""
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
        model=repeat(model, members),
        members=(jnp.arange(members) == 0).astype(jnp.float32),
    )


def _keys(keys: Mapping[str, chex.PRNGKey], names: Iterable[str]) -> jax.Array:
    return jnp.stack([keys[name] for name in names])


def repeat(tree: Any, count: int) -> Any:
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (count, *jnp.shape(x))), tree)


def stack(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)
