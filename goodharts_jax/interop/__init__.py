"""Other people's trainers on our worlds, other people's policies in our judge.

`make` gives an environment in gymnax's form; `gymnasium.make("goodharts_jax/Goodhart-v0")` one in
Gymnasium's, where that is installed; `as_policy` takes a policy from outside in.
"""

from __future__ import annotations

import importlib.util

from goodharts_jax.interop.environment import Environment, EnvParams, EnvState, FiveValues, make
from goodharts_jax.interop.policies import as_policy

__all__ = ["EnvParams", "EnvState", "Environment", "FiveValues", "as_policy", "make"]

ID = "goodharts_jax/Goodhart-v0"
"""Our name in Gymnasium's registry."""


def _register() -> None:
    import gymnasium

    if ID not in gymnasium.registry:
        gymnasium.register(
            id=ID,
            entry_point="goodharts_jax.interop.gym:GoodhartEnv",
            vector_entry_point="goodharts_jax.interop.gym:GoodhartVectorEnv",
            max_episode_steps=512,
        )


if importlib.util.find_spec("gymnasium") is not None:
    _register()
