"""Spaces in gymnax's form: its own classes where it is installed, else what one reads of them."""

from __future__ import annotations

import importlib
import sys
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp


class Discrete(NamedTuple):
    """The whole numbers below `n`."""

    n: int
    shape: tuple[int, ...] = ()
    dtype: Any = jnp.int32

    def sample(self, key: chex.PRNGKey) -> jax.Array:
        """One of them, uniformly. int32[]."""
        return jax.random.randint(key, self.shape, 0, self.n, self.dtype)

    def contains(self, x: jax.Array) -> jax.Array:
        """Whether `x` is one. bool[]."""
        return (jnp.asarray(x) >= 0) & (jnp.asarray(x) < self.n)


class Box(NamedTuple):
    """Arrays of one shape, all numbers between `low` and `high`."""

    low: Any
    high: Any
    shape: tuple[int, ...]
    dtype: Any = jnp.float32

    def sample(self, key: chex.PRNGKey) -> jax.Array:
        """One of them, uniformly. float32[shape]."""
        return jax.random.uniform(key, self.shape, self.dtype, self.low, self.high)

    def contains(self, x: jax.Array) -> jax.Array:
        """Whether `x` is one. bool[]."""
        return jnp.all((jnp.asarray(x) >= self.low) & (jnp.asarray(x) <= self.high))


def discrete(n: int) -> Any:
    """The whole numbers below `n`."""
    return _kinds().Discrete(n)


def box(low: Any, high: Any, shape: tuple[int, ...]) -> Any:
    """Arrays of float32 of one shape between two numbers."""
    return _kinds().Box(low, high, shape)


def _kinds() -> Any:
    """gymnax's module of spaces, or this one."""
    try:
        return importlib.import_module("gymnax.environments.spaces")
    except ImportError:
        return sys.modules[__name__]
