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
from numpy.typing import ArrayLike

from goodharts_jax.rewards import REWARD_LIMIT, Reward, guarded, proxy_reward
from goodharts_jax.rollouts import Transition
from goodharts_jax.world import EMPTY, FOOD, MOVES, NUM_KINDS, POISON, Event

NUM_CHANNELS = 2
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
      mortal: whether energy counts while training; in evaluation it always does. bool[].
      reward: what it is rewarded for.
    """

    appearance: jax.Array
    noise: jax.Array | None
    mortal: jax.Array
    reward: Reward


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
        appearance=floats([(0.0,) * NUM_CHANNELS, food, poison]),
        noise=None if noise is None else floats(noise),
        mortal=jax.device_put(np.array(mortal)),
        reward=Reward(
            item=floats([0.0, food_reward, poison_reward]),
            step=floats(step_reward),
            death=floats(death_reward),
            shaping=floats(shaping),
        ),
    )


def floats(numbers: ArrayLike) -> jax.Array:
    """Numbers of the host put on the device, where making them takes a program for each shape."""
    return jax.device_put(np.array(numbers, np.float32))


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


def bounds(mode: Mode) -> tuple[jax.Array, jax.Array]:
    """The least and the greatest number that an observation can hold. float32[] each."""
    farthest = jnp.float32(np.abs(_NOISE).max() if mode.noise is not None else 0.0)
    spread = farthest * (0.0 if mode.noise is None else mode.noise)
    return jnp.min(mode.appearance) - spread, jnp.max(mode.appearance) + spread


def reward(mode: Mode, step: Transition, next_view: jax.Array, discount: jax.Array) -> jax.Array:
    """Reward for one step; without remedies limited to [-20, 20]. float32[].

    Args:
      mode: the row.
      step: what the agent saw, did and met with.
      next_view: codes after it; not read where the agent died. uint8[V, V].
      discount: of the learner, for the shaping (Ng, Harada & Russell 1999).
    """
    own, event = mode.reward, step.event
    after = jnp.where(event.died, 0.0, potential(next_view))
    bonus = own.shaping * (discount * after - potential(step.view))
    observation = observe(mode, step.view, step.noise_word)
    proxy, members = proxy_reward(own, event, observation, step.action)
    if own.guard is None:
        return jnp.clip(proxy + bonus, -REWARD_LIMIT, REWARD_LIMIT)
    # The word selects the noise too, which tells nothing of these bits of its product.
    draw = (step.noise_word * jnp.uint32(2654435761) >> 8).astype(jnp.float32) * 2.0**-24
    proxy = jnp.clip(proxy, -REWARD_LIMIT, REWARD_LIMIT)
    return guarded(own.guard, proxy, members, event, draw) + bonus


def foreseen(mode: Mode, view: jax.Array, action: jax.Array, noise_word: jax.Array) -> jax.Array:
    """What a mode's proxy makes of a step, from what is known before it: the step eats what lies
    where it leads. Without death, shaping and remedies. float32[].

    Args:
      mode: the row.
      view: codes. uint8[V, V].
      action: int32[].
      noise_word: random bits that select the noise. uint32[].
    """
    middle = view.shape[0] // 2
    dx, dy = jnp.array(MOVES, jnp.int32)[action]
    zero = jnp.int32(0)
    event = Event(view[middle + dy, middle + dx], jnp.array(False), zero, zero, jnp.zeros(2))
    return proxy_reward(mode.reward, event, observe(mode, view, noise_word), action)[0]


def potential(view: jax.Array) -> jax.Array:
    """Nearness of the nearest food in view, 0.5 / (distance + 0.5); 0 with none. float32[]."""
    radius = view.shape[0] // 2
    offset = np.arange(-radius, radius + 1)
    near = 0.5 / (np.hypot(*np.meshgrid(offset, offset)) + 0.5)
    return jnp.max(jnp.where(view == FOOD, jnp.asarray(near, jnp.float32), 0.0))


def stack(modes: list[Mode]) -> Mode:
    """Modes as one pytree with a leading axis; all get noise (of 0) where one has it."""
    if any(mode.noise is not None for mode in modes):
        modes = [m if m.noise is not None else replace(m, noise=floats(0)) for m in modes]
    # On the host: on the device each shape takes a program.
    return jax.tree.map(lambda *leaves: jax.device_put(np.stack(leaves)), *modes)
