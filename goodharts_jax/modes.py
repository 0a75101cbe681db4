"""What an agent perceives and what it is rewarded for, as a table of numbers.

A mode is data: modes stack, so one compiled program trains any number of them, and a new mode is
a new row in YAML. Nothing here or below branches on a mode's name.
"""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax

from goodharts_jax.world import EMPTY, FOOD, NUM_KINDS, POISON, Event

NUM_CHANNELS = 2
REWARD_LIMIT = 20.0
"""A step's reward is cut here, on either side."""
# Observation noise is a window into this table at a random offset: one random word a view
# instead of one a cell, and the window can be looked up again when the policy is updated.
_NOISE = np.random.default_rng(0).standard_normal(1 << 16).astype(np.float32)


@struct.dataclass
class Mode:
    """One row of the table.

    Attributes:
      appearance: how a cell of each kind is perceived. float32[NUM_KINDS, NUM_CHANNELS].
      noise: standard deviation of the noise on the appearance of items, fresh in every step and
        drawn apart for each channel, float32[]; or None, and no noise is ever drawn.
      item_reward: reward for eating each kind. float32[NUM_KINDS].
      step_reward: reward of every step. float32[].
      death_reward: reward of dying. float32[].
      shaping: weight of the potential-based bonus for being near food. float32[].
      mortal: whether energy counts while training; in evaluation it always does. bool[].
    """

    appearance: jax.Array
    noise: jax.Array | None
    item_reward: jax.Array
    step_reward: jax.Array
    death_reward: jax.Array
    shaping: jax.Array
    mortal: jax.Array


def make_mode(
    food: tuple[float, float],
    poison: tuple[float, float],
    food_reward: float,
    poison_reward: float,
    *,
    step_reward: float = 0.0,
    death_reward: float = 0.0,
    shaping: float = 0.0,
    mortal: bool = True,
    noise: float | None = None,
) -> Mode:
    """A mode from plain numbers; see `Mode`.

    Args:
      food: appearance of food in both channels.
      poison: likewise.
      food_reward: reward for eating food.
      poison_reward: likewise.
      step_reward: of every step.
      death_reward: of dying.
      shaping: weight of the bonus for being near food.
      mortal: whether energy counts while training.
      noise: on the appearance of items; None for none.
    """
    return Mode(
        appearance=jnp.array([(0.0,) * NUM_CHANNELS, food, poison], jnp.float32),
        noise=None if noise is None else jnp.float32(noise),
        item_reward=jnp.array([0.0, food_reward, poison_reward], jnp.float32),
        step_reward=jnp.float32(step_reward),
        death_reward=jnp.float32(death_reward),
        shaping=jnp.float32(shaping),
        mortal=jnp.array(mortal),
    )


def observe(mode: Mode, view: jax.Array, noise_word: jax.Array) -> jax.Array:
    """What a mode lets an agent perceive of a view. float32[V, V, NUM_CHANNELS].

    Args:
      mode: the row.
      view: codes. uint8[V, V].
      noise_word: random bits that select the noise. uint32[].
    """
    # A sum over kinds is several times faster on a CPU than looking codes up in a 3-row table.
    empty, food, poison = (
        (view == kind).astype(jnp.float32)[..., None] for kind in range(NUM_KINDS)
    )
    of_kind = mode.appearance
    seen = empty * of_kind[EMPTY] + food * of_kind[FOOD] + poison * of_kind[POISON]
    if mode.noise is None:
        return seen
    # One noise for all channels would cancel in their difference.
    start = (noise_word % jnp.uint32(_NOISE.size - seen.size)).astype(jnp.int32)
    noise = lax.dynamic_slice(jnp.asarray(_NOISE), (start,), (seen.size,)).reshape(seen.shape)
    return seen + mode.noise * noise * (1.0 - empty)


def reward(
    mode: Mode, event: Event, view: jax.Array, next_view: jax.Array, discount: jax.Array
) -> jax.Array:
    """Reward for one step, limited to [-20, 20]. float32[].

    Args:
      mode: the row.
      event: what happened.
      view: codes before the step. uint8[V, V].
      next_view: codes after it; not read where the agent died.
      discount: of the learner, for the shaping (Ng, Harada & Russell 1999).
    """
    after = jnp.where(event.died, 0.0, potential(next_view))
    bonus = mode.shaping * (discount * after - potential(view))
    total = mode.item_reward[event.eaten] + mode.step_reward
    total = total + mode.death_reward * event.died + bonus
    return jnp.clip(total, -REWARD_LIMIT, REWARD_LIMIT)


def potential(view: jax.Array) -> jax.Array:
    """Nearness of the nearest food in view, 0.5 / (distance + 0.5); 0 with none. float32[]."""
    radius = view.shape[0] // 2
    offset = np.arange(-radius, radius + 1)
    near = 0.5 / (np.hypot(*np.meshgrid(offset, offset)) + 0.5)
    return jnp.max(jnp.where(view == FOOD, jnp.asarray(near, jnp.float32), 0.0))


def is_distinct(mode: Mode) -> bool:
    """Whether food and poison look different at all: without noise, enough to tell them apart."""
    return bool(jnp.any(mode.appearance[FOOD] != mode.appearance[POISON]))


def stack(modes: list[Mode]) -> Mode:
    """Modes as one pytree with a leading axis; all get noise (of 0) where one has it."""
    if any(mode.noise is not None for mode in modes):
        modes = [m if m.noise is not None else replace(m, noise=jnp.float32(0)) for m in modes]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *modes)
