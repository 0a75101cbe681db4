"""Our world as Gymnasium's environments: `gymnasium.make` and `gymnasium.make_vec` find them.

    env = gymnasium.make("goodharts_jax/Goodhart-v0", mode="proxy")
    envs = gymnasium.make_vec("goodharts_jax/Goodhart-v0", num_envs=256, mode="proxy")

The reward is the mode's; the truth stands in `info`: `energy` that the step gained and cost, `food`
and `poison` that it ate. Needs the extra `gym`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from goodharts_jax import modes
from goodharts_jax import world as physics
from goodharts_jax.interop import frames
from goodharts_jax.interop.environment import (
    DISCOUNT,
    MAX_STEPS,
    Environment,
    EnvParams,
    EnvState,
    make,
)
from goodharts_jax.modes import NUM_CHANNELS, Mode
from goodharts_jax.world import NUM_ACTIONS, World

Named = dict[str, Any]
"""Gymnasium's infos and options: anything, by name."""

_FOREVER = 2**31 - 1


class GoodhartEnv(gymnasium.Env[np.ndarray, np.int64]):
    """One agent in one world.

    `reset(seed=...)` makes a world. `reset()` begins a new life in the one there is, as does
    every later one until a seed or `options={"new_world": True}` is given. The time limit is that
    of `gymnasium.make`.

    Args:
      mode: a name, as on the command line, or the numbers themselves.
      world: likewise.
      discount: of the learner; only a mode's shaping reads it.
      render_mode: "rgb_array" for frames, "human" for a window.
    """

    metadata = {"render_modes": ["human", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        mode: str | Mode = "proxy",
        world: str | World = "protocol",
        *,
        discount: float = DISCOUNT,
        render_mode: str | None = None,
    ) -> None:
        _, self._params = make(mode, world, max_steps=_FOREVER, discount=discount)
        self.observation_space, self.action_space = _spaces(self._params)
        self.render_mode = render_mode
        self._state: EnvState | None = None
        self._key: Any = None
        self._window: frames.Window | None = None

    def reset(
        self, *, seed: int | None = None, options: Named | None = None
    ) -> tuple[np.ndarray, Named]:
        """A new life in the same world: its first observation, float32[V, V, channels]. A seed, or
        the option `new_world`, makes another world.
        """
        super().reset(seed=seed)
        self._key = jax.random.key(int(self.np_random.integers(2**32)))
        if seed is not None or (options or {}).get("new_world") or self._state is None:
            observation, self._state, self._key = _reset(self._params, self._key)
        else:
            observation, self._state, self._key = _respawn(self._params, self._key, self._state)
        self._show()
        return np.array(observation), {}

    def step(self, action: np.int64) -> tuple[np.ndarray, float, bool, bool, Named]:
        """One step: observation, the mode's reward, whether the agent died, whether its time was
        up, and the true `energy`, `food` and `poison`.
        """
        assert self._state is not None, "call reset before step"
        self._key, (_, self._state, *outcome) = _step(
            self._params, self._key, self._state, np.int32(action)
        )
        self._show()
        reward, terminated, _, info = jax.device_get(outcome)
        told = _truth(info)
        told = {name: column.item() for name, column in told.items()}
        return info["final_observation"].copy(), float(reward), bool(terminated), False, told

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The present frame, uint8[5 size, 5 size, 3]; None in a window."""
        return self._frame() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None

    def _frame(self) -> np.ndarray:
        assert self._state is not None, "call reset before render"
        return _frame(self._params, self._state.world)

    def _show(self) -> None:
        if self.render_mode == "human":
            image = self._frame()
            self._window = self._window or frames.Window(image)
            self._window.show(image)


class GoodhartVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many worlds, one jitted step for all.

    Who dies or reaches the time limit is reborn in the same world within the step
    (`AutoresetMode.SAME_STEP`); what it last saw is in `info["final_obs"]`. Arguments are those of
    `GoodhartEnv`, with the number of worlds and the time limit.
    """

    metadata = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 8,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        mode: str | Mode = "proxy",
        world: str | World = "protocol",
        *,
        max_episode_steps: int = MAX_STEPS,
        discount: float = DISCOUNT,
        render_mode: str | None = None,
    ) -> None:
        _, self._params = make(mode, world, max_steps=max_episode_steps, discount=discount)
        self.num_envs, self.render_mode = num_envs, render_mode
        self.single_observation_space, self.single_action_space = _spaces(self._params)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._states: EnvState | None = None
        self._keys: Any = None

    def reset(
        self, *, seed: int | None = None, options: Named | None = None
    ) -> tuple[np.ndarray, Named]:
        """Fresh worlds and their first observations, float32[num_envs, V, V, channels]."""
        super().reset(seed=seed)
        key = jax.random.key(int(self.np_random.integers(2**32)))
        self._keys = jax.random.split(key, self.num_envs)
        observations, self._states, self._keys = _reset_all(self._params, self._keys)
        return np.array(observations), {}

    def step(
        self, actions: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Named]:
        """One step of every world, see `GoodhartEnv.step`; who ended shows its next life."""
        assert self._states is not None, "call reset before step"
        actions = np.asarray(actions, np.int32)
        self._keys, (seen, self._states, *outcome) = _step_all(
            self._params, self._keys, self._states, actions
        )
        reward, terminated, truncated, info = jax.tree.map(np.array, jax.device_get(outcome))
        ended = terminated | truncated
        truth = _truth(info)
        told: Named = _masked(truth, np.ones(self.num_envs, bool))
        if ended.any():
            last = np.full(self.num_envs, None, object)
            for i in np.flatnonzero(ended):
                last[i] = info["final_observation"][i]
            final = {name: np.where(ended, column, 0) for name, column in truth.items()}
            told |= {"final_obs": last, "_final_obs": ended.copy()}
            told |= {"final_info": _masked(final, ended), "_final_info": ended.copy()}
        return np.array(seen), reward.astype(np.float64), terminated, truncated, told

    def render(self) -> tuple[np.ndarray, ...] | None:  # type: ignore[override]
        """The present frame of each world, uint8[5 size, 5 size, 3]."""
        if self.render_mode is None:
            return None
        assert self._states is not None, "call reset before render"
        worlds = self._states.world
        return tuple(
            _frame(self._params, jax.tree.map(lambda x, i=i: x[i], worlds))
            for i in range(self.num_envs)
        )


# One environment's methods for all, so that environments of equal shapes share their programs.
_ENVIRONMENT = Environment()


@jax.jit
def _reset(params: EnvParams, key: jax.Array) -> Any:
    key, now = jax.random.split(key)
    return *_ENVIRONMENT.reset(now, params), key


@jax.jit
def _respawn(params: EnvParams, key: jax.Array, state: EnvState) -> Any:
    key, now = jax.random.split(key)
    return *_ENVIRONMENT.respawn(now, state, params), key


@jax.jit
def _step(params: EnvParams, key: jax.Array, state: EnvState, action: Any) -> Any:
    key, now = jax.random.split(key)
    return key, _ENVIRONMENT.step(now, state, action, params)


_reset_all = jax.jit(jax.vmap(_reset, (None, 0)))
# The states are given away: the grids are then written in place.
_step_all = partial(jax.jit, donate_argnums=(1, 2))(jax.vmap(_step, (None, 0, 0, 0)))


def _spaces(params: EnvParams) -> tuple[Box, Discrete]:
    low, high = (float(bound) for bound in modes.bounds(params.mode))
    side = params.world.view_size
    return Box(low, high, (side, side, NUM_CHANNELS), np.float32), Discrete(NUM_ACTIONS)


def _frame(params: EnvParams, world: physics.State) -> np.ndarray:
    cells = np.asarray(physics.cells(params.world, world))
    return frames.frame(cells, np.asarray(world.position), params.world.view_radius)


def _truth(info: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a step ate, and what it gained and cost, to the digit of the unit of energy."""
    energy = np.round(info["energy"].astype(np.float64), 4)
    return {"energy": energy, "food": info["food"], "poison": info["poison"]}


def _masked(columns: dict[str, np.ndarray], told: np.ndarray) -> Named:
    """Columns beside the masks that Gymnasium puts there: which environments tell them."""
    return columns | {f"_{name}": told.copy() for name in columns}
