"""What an agent did, recorded step by step, for the replay on the page.

`record` is pure and jitted like everything that touches the world; `replay` turns recordings
into the plain data of `replay.json`:

    {
      "size": 100,                 side of the torus, in cells
      "view_radius": 5,
      "start_energy": 1.0,
      "steps": 600,                T, the same for all modes
      "moves": [[dx, dy], ...],    of the 8 actions; +x is east, +y is south
      "modes": {
        NAME: {
          "perceive": [[c0, c1], [c0, c1], [c0, c1]],   two channels of EMPTY, FOOD and POISON,
                                   without the noise that a mode may add
          "food": [cell, ...],     where the items lie before step 0; cell = y * size + x
          "poison": [cell, ...],
          "x": [T], "y": [T],      the agent's cell before each step
          "action": [T],           index into moves
          "eaten": [T],            0 nothing, 1 food, 2 poison
          "regrown": [T],          cell where the eaten item reappeared, -1 if nothing was eaten
          "energy": [T],           after each step, before a rebirth; at most 0 where the agent died
          "died": [T],             0 or 1; who died in step t stands newborn in frame t + 1
          "probabilities": [[8 numbers], ...],          of the actions, in thousandths
          "value": [T] or null     the critic's estimate before each step; null without a critic
        }
      }
    }

Recordings that share a key start in the same world, on the same cell.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax.tree_util import Partial

from goodharts_jax import world as physics
from goodharts_jax.world import EMPTY, ENERGY_UNIT, FOOD, MOVES, POISON, World

Agent = Partial
"""From one view, uint8[view_size, view_size], and the random word that selects its noise,
uint32[], to the logits of the actions, f32[8], and the value expected, f32[], NaN without a
critic. A pytree, so that agents that differ only in their parameters share one compilation:
`Partial(act, parameters, mode)`."""


@struct.dataclass
class Recording:
    """One agent's steps in one world.

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


@partial(jax.jit, static_argnames="steps")
def record(key: chex.PRNGKey, world: World, agent: Agent, steps: int) -> Recording:
    """Follow one agent for `steps` steps, its actions sampled.

    Args:
      key: consumed; equal keys give equal starts, whatever the agent.
      world: the rules.
      agent: from a view and a look to logits and value.
      steps: how many; static.
    """
    reset_key, life_key = jax.random.split(key)
    start = physics.reset(world, reset_key)

    def live(state: physics.State, key: chex.PRNGKey):
        action_key, look_key, step_key = jax.random.split(key, 3)
        logits, value = agent(physics.view(world, state), jax.random.bits(look_key))
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


def replay(world: World, recordings: Mapping[str, tuple[Any, Recording]]) -> dict[str, Any]:
    """The plain data of `replay.json`, as the module describes it.

    Args:
      world: the rules that all recordings share.
      recordings: by mode, what it perceives of each cell kind (f32[3, 2]) and its recording.

    Raises:
      ValueError: there is no recording, or their lengths differ.
    """
    lengths = {recording.action.shape[0] for _, recording in recordings.values()}
    if len(lengths) != 1:
        raise ValueError(f"a replay needs recordings of one length, not {sorted(lengths)} steps")
    return {
        "size": world.size,
        "view_radius": world.view_radius,
        "start_energy": _energy(world.start_energy),
        "steps": lengths.pop(),
        "moves": [list(move) for move in MOVES],
        "modes": {name: _columns(*entry) for name, entry in recordings.items()},
    }


def _columns(perceive: Any, recording: Recording) -> dict[str, Any]:
    cells, event = np.asarray(recording.cells), jax.tree.map(np.asarray, recording.event)
    y, x = np.asarray(recording.position).T
    regrown = event.regrown[:, 0] * cells.shape[1] + event.regrown[:, 1]
    value = np.asarray(recording.value)
    return {
        "perceive": np.round(np.asarray(perceive, float), 3).tolist(),
        "food": np.flatnonzero(cells == FOOD).tolist(),
        "poison": np.flatnonzero(cells == POISON).tolist(),
        "x": x.tolist(),
        "y": y.tolist(),
        "action": np.asarray(recording.action).tolist(),
        "eaten": event.eaten.tolist(),
        "regrown": np.where(event.eaten == EMPTY, -1, regrown).tolist(),
        "energy": _energy(event.energy),
        "died": event.died.astype(int).tolist(),
        "probabilities": np.round(1000 * np.asarray(recording.probabilities)).astype(int).tolist(),
        "value": None if np.isnan(value).any() else np.round(value.astype(float), 3).tolist(),
    }


def _energy(units: Any) -> Any:
    """Energy in the world's integer units, as plain numbers in energy."""
    return np.round(np.asarray(units) * ENERGY_UNIT, 4).tolist()
