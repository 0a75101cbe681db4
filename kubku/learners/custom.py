"""A learner of the user's own."""

from __future__ import annotations

import importlib
from typing import Any

from kubku.halo import Learner

_EXPOSURES = ("gradient", "state", "none")


def custom(target: str) -> Learner:
    """A learner of the user's own.

    Args:
      target: "module:Name"; calling Name() gives an object with the functions `init(key)`,
        `learn(state, sample)` and `answer(state, query)` of `Learner`, and, where it has them,
        `bases`, `trials`, `chunk` and `exposure`.

    Raises:
      ValueError: the target can't be imported or lacks a function; names it.
    """
    module, _, name = target.partition(":")
    if not module or not name:
        raise ValueError(f"target={target!r}: 'module:Name' is needed")
    try:
        made = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"target={target!r}: {error}") from error
    if isinstance(made, Learner):
        return made
    for function in ("init", "learn", "answer"):
        if not callable(getattr(made, function, None)):
            raise ValueError(f"target={target!r}: it has no function {function!r}")
    exposure: Any = getattr(made, "exposure", "state")
    if exposure not in _EXPOSURES:
        raise ValueError(
            f"target={target!r}: its exposure is gradient, state or none, not {exposure!r}"
        )
    return Learner(
        made.init,
        made.learn,
        made.answer,
        getattr(made, "bases", {"own": None}),
        getattr(made, "trials", ({},)),
        getattr(made, "chunk", 16),
        exposure,
    )
