"""What policies did, recorded step by step, for the replay on the page.

`record` is pure and jitted like everything that touches the world; `make_replay` makes what
`replay.json` holds. Recordings that share a key start in the same world, on the same cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.tree_util import Partial

from evidence.record import Record
from evidence.runtime.compiling import brief
from goodharts_jax import world as physics
from goodharts_jax.modes import Mode
from goodharts_jax.networks import ActorCritic
from goodharts_jax.networks import policy as network_policy
from goodharts_jax.policies import Output, Policy, at_temperature
from goodharts_jax.world import EMPTY, ENERGY_UNIT, FOOD, MOVES, POISON, World

# The kinds as they are: one channel each.
_TRUTH = ((0, 0), (1, 0), (0, 1))


class Track(Record):
    """One policy's steps, T of them, by column."""

    perceive: tuple[tuple[float, float], ...]
    """[3, 2]: two channels of EMPTY, FOOD and POISON, without the noise that a mode may add."""
    food: tuple[int, ...]
    """Where food lies before step 0; cell = y * size + x."""
    poison: tuple[int, ...]
    """Where poison lies."""
    x: tuple[int, ...]
    """[T]: column of the agent's cell before each step."""
    y: tuple[int, ...]
    """[T]: row."""
    action: tuple[int, ...]
    """[T]: index into moves."""
    eaten: tuple[int, ...]
    """[T]: 0 nothing, 1 food, 2 poison."""
    regrown: tuple[int, ...]
    """[T]: cell where the eaten item reappeared, -1 if nothing was eaten."""
    energy: tuple[float, ...]
    """[T]: after each step, before a rebirth; at most 0 where the agent died."""
    died: tuple[int, ...]
    """[T]: 0 or 1; who died in step t stands newborn in frame t + 1."""
    probabilities: tuple[tuple[int, ...], ...]
    """[T, 8]: of the actions, in thousandths."""
    value: tuple[float, ...] | None
    """[T]: the critic's estimate before each step; None without a critic."""


class Replay(Record):
    """What `replay.json` holds."""

    size: int
    """Side of the torus, in cells."""
    view_radius: int
    """In cells."""
    start_energy: float
    """At birth."""
    steps: int
    """T, the same for all."""
    moves: tuple[tuple[int, int], ...]
    """(dx, dy) of the 8 actions; +x is east, +y is south."""
    modes: dict[str, Track]
    """By the name of the mode or script."""


@struct.dataclass
class Recording:
    """One policy's steps in one world.

    Attributes:
      cells: codes before the first step. uint8[size, size].
      position: (y, x) before each step. int32[steps, 2].
      action: index into MOVES. int32[steps].
      probabilities: of the actions. f32[steps, 8].
      value: the critic's estimate before each step, NaN without a critic. f32[steps].
      event: what each step did. world.Event of [steps].
    """

    cells: jax.Array
    position: jax.Array
    action: jax.Array
    probabilities: jax.Array
    value: jax.Array
    event: physics.Event


@partial(brief, static_argnames="steps")
def record(key: chex.PRNGKey, world: World, policy: Policy, steps: int) -> Recording:
    """Follow one policy for `steps` steps, its actions sampled.

    Args:
      key: consumed; equal keys give equal starts, whatever the policy.
      world: the rules.
      policy: a pytree too, such as `jax.tree_util.Partial`: policies that differ only in their
        parameters share one compilation.
      steps: how many; static.
    """
    reset_key, life_key = jax.random.split(key)
    start = physics.reset(world, reset_key)

    def live(state: physics.State, key: chex.PRNGKey):
        action_key, noise_key, step_key = jax.random.split(key, 3)
        logits, value = policy(physics.view(world, state), jax.random.bits(noise_key))
        action = jax.random.categorical(action_key, logits)
        after, event = physics.step(world, state, action, step_key)
        return after, (state.position, action, jax.nn.softmax(logits), value, event)

    _, (position, action, probabilities, value, event) = jax.lax.scan(
        live, start, jax.random.split(life_key, steps)
    )
    return Recording(
        cells=physics.cells(world, start),
        position=position,
        action=action,
        probabilities=probabilities,
        value=jnp.asarray(value, jnp.float32),
        event=event,
    )


def record_policies(
    network: ActorCritic,
    trained: Mapping[str, tuple[Any, Mode]],
    scripts: Mapping[str, Policy],
    world: World,
    key: chex.PRNGKey,
    *,
    temperature: float = 1.0,
    steps: int = 600,
) -> Replay:
    """Record trained and scripted policies in one world, as full of items as worlds are on average.

    Args:
      network: of the trained policies.
      trained: parameters and mode of each, by name; at least one.
      scripts: by name.
      world: the rules.
      key: consumed.
      temperature: divides the logits of trained policies; 0 takes the likeliest action.
      steps: of each policy.
    """

    def act(
        which: jax.Array, params: Any, mode: Mode, view: jax.Array, noise_word: jax.Array
    ) -> Output:
        learnt = at_temperature(network_policy(network, params, mode), temperature)
        return jax.lax.switch(which, [learnt, *scripts.values()], view, noise_word)

    # A script carries parameters along that it never reads: one program records them all.
    unread = next(iter(trained.values()))
    shown: dict[str, tuple[int, Any, Any, Mode]] = {
        name: (0, mode.appearance, params, mode) for name, (params, mode) in trained.items()
    }
    shown |= {name: (i, _TRUTH, *unread) for i, name in enumerate(scripts, start=1)}
    world = _average(world)
    return make_replay(
        world,
        {
            name: (
                appearance,
                record(key, world, Partial(act, np.int32(which), params, mode), steps),
            )
            for name, (which, appearance, params, mode) in shown.items()
        },
    )


def record_scripts(
    scripts: Mapping[str, Policy], world: World, key: chex.PRNGKey, *, steps: int = 600
) -> Replay:
    """Record policies that carry no parameters along, in the world that `record_policies` makes.

    Args:
      scripts: by name; at least one.
      world: the rules.
      key: consumed.
      steps: of each policy.
    """
    world, policies = _average(world), list(scripts.values())

    def act(which: jax.Array, view: jax.Array, noise_word: jax.Array) -> Output:
        return jax.lax.switch(which, policies, view, noise_word)

    return make_replay(
        world,
        {
            name: (_TRUTH, record(key, world, Partial(act, np.int32(which)), steps))
            for which, name in enumerate(scripts)
        },
    )


def _average(world: World) -> World:
    """A world as full of items as worlds are on average."""
    items = np.sum(np.asarray(world.items), axis=1, keepdims=True, dtype=np.int32) // 2
    return replace(world, items=jax.device_put(np.repeat(items, 2, axis=1)))


def make_replay(world: World, recordings: Mapping[str, tuple[Any, Recording]]) -> Replay:
    """What the page plays, from recordings.

    Args:
      world: the rules that all recordings share.
      recordings: by name, the appearance of each cell kind (f32[3, 2]) and the recording.

    Raises:
      ValueError: there is no recording, or their lengths differ.
    """
    lengths = {recording.action.shape[0] for _, recording in recordings.values()}
    if len(lengths) != 1:
        raise ValueError(f"a replay needs recordings of one length, not {sorted(lengths)} steps")
    return Replay(
        size=world.size,
        view_radius=world.view_radius,
        start_energy=_energy(world.start_energy),
        steps=lengths.pop(),
        moves=MOVES,
        modes={name: _track(*entry) for name, entry in recordings.items()},
    )


def _track(appearance: Any, recording: Recording) -> Track:
    cells, event = np.asarray(recording.cells), jax.tree.map(np.asarray, recording.event)
    y, x = np.asarray(recording.position).T
    regrown = event.regrown[:, 0] * cells.shape[1] + event.regrown[:, 1]
    value = np.asarray(recording.value)
    return Track(
        perceive=np.round(np.asarray(appearance, float), 3).tolist(),
        food=_places(cells, FOOD),
        poison=_places(cells, POISON),
        x=x.tolist(),
        y=y.tolist(),
        action=np.asarray(recording.action).tolist(),
        eaten=event.eaten.tolist(),
        regrown=np.where(event.eaten == EMPTY, -1, regrown).tolist(),
        energy=_energy(event.energy),
        died=event.died.astype(int).tolist(),
        probabilities=np.round(1000 * np.asarray(recording.probabilities)).astype(int).tolist(),
        value=None if np.isnan(value).any() else np.round(value.astype(float), 3).tolist(),
    )


def _places(cells: np.ndarray, kind: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(cells == kind).tolist())


def _energy(units: Any) -> Any:
    """Energy in the world's integer units, as plain numbers in energy."""
    return np.round(np.asarray(units) * ENERGY_UNIT, 4).tolist()
