"""How far a program is optimised, by how long it will run."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax


def brief(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit` of a function that is soon done, see `in_brief`.

    Args:
      function: pure.
      options: of `jax.jit`.
    """

    @cache  # not before it is called, for then JAX is set up
    def program() -> Any:
        return jax.jit(function, compiler_options=in_brief(), **options)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return program()(*arguments, **named)

    return call


def in_brief() -> dict[str, int] | None:
    """`compiler_options` of `jax.jit` for a program that is soon done, such as one that makes
    worlds: on a CPU it is compiled in half the time, and may take half as long again to run.

    None where there is another device, and where `XLA_FLAGS` say how far to optimise.
    """
    if jax.default_backend() != "cpu" or "optimization_level" in os.environ.get("XLA_FLAGS", ""):
        return None
    # At level 0 the making of worlds takes four times as long, and initial parameters differ.
    return {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
