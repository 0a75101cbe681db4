"""All learners by the names they have in results."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kubku import base_states
from kubku.base_states import Outer, Training
from kubku.halo import EXPOSURES, FACTS, Learner, features, token_features
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.controls import controls
from kubku.learners.gradient import CNN, GRU, MLP, Transformer, gradient_learner, one_step
from kubku.outer import OUTER
from kubku.tasks import Family

CONTROLS = (
    "always_yes",
    "always_no",
    "always_unknown",
    "random_answers",
    "dictionary",
    "nearest_neighbour",
    "question_only",
    "generator_oracle",
)
GRADIENT = ("mlp", "cnn", "gru", "transformer")
REPLAY = ("mlp_replay",)
CONTEXT = ("gru_context", "transformer_context")
GROWNET = ("grownet_lookup", "grownet_vote", "grownet_two_layer")
ABLATED = (
    "grownet_no_growth",
    "grownet_one_attribute",
    "grownet_unweighted",
    "grownet_windowed",
    "grownet_without_novelty",
    "grownet_never_told_unknown",
)
SPATIAL = ("cnn", "grownet_windowed")
"""Those that need a family laid out in space."""
OF_FAMILY = (*SPATIAL, "generator_oracle")
"""Those that depend on the family; the others are the same program for each."""
NAMES = (*GRADIENT, *REPLAY, *CONTEXT, *GROWNET, *ABLATED, *CONTROLS)


def make(name: str, family: Family, training: Training, outer: Outer | None = None) -> Learner:
    """The learner of that name for a family.

    Args:
      name: one of `NAMES`.
      family: what it is to learn from.
      training: how much its base states are trained.
      outer: how, if otherwise than `kubku.outer` says.

    Raises:
      ValueError: there is no such learner, or it can't handle the family.
    """
    if name in CONTROLS:
        return controls(family, EXPOSURES)[name]
    if name in SPATIAL and not spatial(family):
        raise ValueError(
            f"learner.names: {name} needs a family laid out in space; {family.name} isn't"
        )
    if name in (*GROWNET, *ABLATED):
        learner = getattr(importlib.import_module("kubku.grownet.learners"), name)
        return learner(family.canvas) if name in SPATIAL else learner()
    networks: dict[str, Callable[[], tuple[Any, Callable, int]]] = {
        "mlp": lambda: (MLP(), features, 8),
        "cnn": lambda: (CNN(family.canvas), features, 8),
        "gru": lambda: (GRU(), token_features, 8),
        "transformer": lambda: (Transformer(), token_features, 8),
    }
    own = name.removesuffix("_replay")
    if name in (*GRADIENT, *REPLAY):
        network, encode, chunk = networks[own]()
        # A replaying learner keeps as many items as a sample states facts.
        learner = gradient_learner(network, encode, chunk, replayed=0 if own == name else FACTS)
        bases = base_states.of(learner, training, outer or OUTER[own], one_step(network, encode))
        return learner._replace(bases=bases if own == name else base_states.replaying(bases))
    if name == "gru_context":
        learner = context_learner(GRUReader(), chunk=64)
    elif name == "transformer_context":
        learner = context_learner(TransformerReader(), chunk=32)
    else:
        raise ValueError(
            f"learner.names: no learner is called {name!r}; there are {', '.join(NAMES)}"
        )
    bases = base_states.of(learner, training, outer or OUTER[name])
    # Reading is only learnt by being trained through it.
    bases.pop("marginal")
    return learner._replace(bases=bases)


def spatial(family: Family) -> bool:
    """Whether the family's attributes lie in space, as those in `SPATIAL` need."""
    return family.canvas != (0, 0)


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
        raise ValueError(f"learner.target={target!r}: 'module:Name' is needed")
    try:
        made = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError) as error:
        raise ValueError(f"learner.target={target!r}: {error}") from error
    if isinstance(made, Learner):
        return made
    for function in ("init", "learn", "answer"):
        if not callable(getattr(made, function, None)):
            raise ValueError(f"learner.target={target!r}: it has no function {function!r}")
    exposure = getattr(made, "exposure", "state")
    if exposure not in ("gradient", "state", "none"):
        raise ValueError(
            f"learner.target={target!r}: its exposure is gradient, state or none, not {exposure!r}"
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
