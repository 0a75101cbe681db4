"""Our world as an environment in gymnax's form: pure functions that trainers in JAX jit and vmap.

    env, params = make("proxy")
    observation, state = env.reset(key, params)
    observation, state, reward, terminated, truncated, info = env.step(key, state, action, params)

gymnax itself is not needed: an environment is known by its methods. Spaces are gymnax's own where
it is installed, for some trainers ask for their class.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import chex
import jax
import jax.numpy as jnp
from flax import struct

from goodharts_jax import modes, named
from goodharts_jax import world as physics
from goodharts_jax.interop import spaces
from goodharts_jax.modes import NUM_CHANNELS, Mode
from goodharts_jax.rollouts import Transition
from goodharts_jax.world import ENERGY_UNIT, FOOD, NUM_ACTIONS, POISON, World

MAX_STEPS = 512
"""Steps of an episode, unless told otherwise."""

DISCOUNT = 0.97
"""Of the learner, unless told otherwise; only a mode's shaping reads it."""

Info = dict[str, jax.Array]
"""What a step tells beside its reward, by name."""


@struct.dataclass
class EnvState:
    """One environment at one moment.

    Attributes:
      world: the world and its agent.
      time: steps since the episode began. int32[].
      noise_word: random bits that select the noise of the present observation. uint32[].
    """

    world: physics.State
    time: jax.Array
    noise_word: jax.Array


@struct.dataclass
class EnvParams:
    """What an environment's numbers are; every leaf may be swept by `vmap`.

    Attributes:
      world: the rules; whether agents are mortal is the mode's affair.
      mode: what the agent perceives and is rewarded for.
      max_steps_in_episode: after so many an episode is truncated. int32[].
      discount: of the learner, for a mode's shaping. float32[].
    """

    world: World
    mode: Mode
    max_steps_in_episode: Any = MAX_STEPS
    discount: Any = DISCOUNT

    @property
    def rules(self) -> World:
        """The world as it is while one learns."""
        return replace(self.world, mortal=self.mode.mortal)


class Environment:
    """An environment with today's `step` of six values.

    Who dies, or reaches the time limit, is reborn in the same world, which is never made anew: only
    `reset` makes a world. What an ended episode last showed is `info["final_observation"]`.
    """

    def __init__(self, params: EnvParams | None = None) -> None:
        self._params = params

    @property
    def default_params(self) -> EnvParams:
        """Those that `make` gave it.

        Raises:
          ValueError: it was made without.
        """
        if self._params is None:
            raise ValueError("this environment has no parameters of its own: pass params")
        return self._params

    @property
    def name(self) -> str:
        """What loggers call it."""
        return "Goodhart-v0"

    @property
    def num_actions(self) -> int:
        """A step to each of the eight neighbours."""
        return NUM_ACTIONS

    def action_space(self, params: EnvParams | None = None) -> Any:
        """Discrete: the index of a move in `goodharts_jax.MOVES`."""
        return spaces.discrete(NUM_ACTIONS)

    def observation_space(self, params: EnvParams | None = None) -> Any:
        """Box: what a mode makes of the cells around the agent. float32[V, V, channels]."""
        params = params or self.default_params
        low, high = modes.bounds(params.mode)
        side = params.world.view_size
        return spaces.box(low, high, (side, side, NUM_CHANNELS))

    @partial(jax.jit, static_argnames="self")
    def reset(
        self, key: chex.PRNGKey, params: EnvParams | None = None
    ) -> tuple[jax.Array, EnvState]:
        """A fresh world: its first observation and its state."""
        params = params or self.default_params
        world_key, noise_key = jax.random.split(key)
        return _begin(params, physics.reset(params.rules, world_key), noise_key)

    @partial(jax.jit, static_argnames="self")
    def respawn(
        self, key: chex.PRNGKey, state: EnvState, params: EnvParams | None = None
    ) -> tuple[jax.Array, EnvState]:
        """A new life in the same world: its first observation and its state."""
        params = params or self.default_params
        life_key, noise_key = jax.random.split(key)
        return _begin(params, physics.respawn(params.rules, state.world, life_key), noise_key)

    @partial(jax.jit, static_argnames="self")
    def step(
        self,
        key: chex.PRNGKey,
        state: EnvState,
        action: jax.Array,
        params: EnvParams | None = None,
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, jax.Array, Info]:
        """One step.

        Returns:
          The observation, of a newborn where an episode ended; the state; the mode's reward,
          float32[]; whether the agent died and whether its time was up, bool[] each; and the truth,
          whatever the mode rewards: `energy`, what the step gained and cost, float32[], `food` and
          `poison`, how many it ate, int32[] each, with `terminated`, `truncated` and
          `final_observation`, which of a step that ends nothing is the observation.
        """
        params = params or self.default_params
        rules = params.rules
        step_key, noise_key = jax.random.split(key)
        stood = physics.view(rules, state.world)
        reached = physics.destination(rules, state.world, action)
        is_late = state.time + 1 >= params.max_steps_in_episode
        world, event = physics.step(rules, state.world, action, step_key, ends=is_late)
        terminated, truncated = event.died, is_late & ~event.died
        # Where it stands unless it is reborn.
        view = physics.view(rules, replace(world, position=reached))
        zero = jnp.float32(0)
        happened = Transition(stood, state.noise_word, action, zero, zero, event)
        reward = modes.reward(params.mode, happened, view, params.discount)
        noise_word = jax.random.bits(noise_key)
        final = modes.observe(params.mode, view, noise_word)
        time = jnp.where(terminated | truncated, 0, state.time + 1)
        observation = modes.observe(params.mode, physics.view(rules, world), noise_word)
        info = {
            "energy": (rules.energy[event.eaten] - rules.move_cost) * ENERGY_UNIT,
            "food": (event.eaten == FOOD).astype(jnp.int32),
            "poison": (event.eaten == POISON).astype(jnp.int32),
            "terminated": terminated,
            "truncated": truncated,
            "final_observation": final,
        }
        now = EnvState(world, time, noise_word)
        return observation, now, reward, terminated, truncated, info


class FiveValues(Environment):
    """The same with the older `step` of five values, which PureJaxRL and rejax 0.1.3 unpack.

    An episode that ended says `done`, whatever ended it; `info` tells which. It lacks
    `final_observation`, for such trainers read none and keep all that they are told.
    """

    @partial(jax.jit, static_argnames="self")
    def step(  # type: ignore[override]
        self,
        key: chex.PRNGKey,
        state: EnvState,
        action: jax.Array,
        params: EnvParams | None = None,
    ) -> tuple[jax.Array, EnvState, jax.Array, jax.Array, Info]:
        """One step: observation, state, reward, whether the episode ended, and info."""
        result = super().step(key, state, action, params)
        observation, state, reward, terminated, truncated, info = result
        del info["final_observation"]
        return observation, state, reward, terminated | truncated, info


def make(
    mode: str | Mode = "proxy",
    world: str | World = "protocol",
    *,
    max_steps: int = MAX_STEPS,
    discount: float = DISCOUNT,
    values: int = 6,
) -> tuple[Environment, EnvParams]:
    """An environment and its parameters.

    Args:
      mode: a name, as on the command line, or the numbers themselves.
      world: likewise.
      max_steps: the time limit of an episode.
      discount: of the learner; only a mode's shaping reads it.
      values: that `step` returns, 6 or 5.

    Raises:
      ValueError: there is no such mode, world or step.
    """
    if values not in (5, 6):
        raise ValueError(f"values={values}: a step returns 6, or 5 in the older form")
    if max_steps < 1:
        raise ValueError(f"max_steps={max_steps}: an episode has one step at least")
    if isinstance(mode, str):
        mode = named.mode(mode, *([f"world={world}"] if isinstance(world, str) else []))
    if isinstance(world, str):
        world = named.world(world)
    params = EnvParams(world, mode, jnp.int32(max_steps), jnp.float32(discount))
    return (Environment if values == 6 else FiveValues)(params), params


def _begin(
    params: EnvParams, world: physics.State, key: chex.PRNGKey
) -> tuple[jax.Array, EnvState]:
    noise_word = jax.random.bits(key)
    observation = modes.observe(params.mode, physics.view(params.rules, world), noise_word)
    return observation, EnvState(world, jnp.zeros((), jnp.int32), noise_word)
