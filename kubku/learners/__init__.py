"""All learners by the names they have in results."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from kubku import base_states
from kubku.base_states import Training
from kubku.halo import EXPOSURES, Learner, features, token_features
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.controls import controls
from kubku.learners.gradient import CNN, GRU, MLP, Transformer, gradient_learner
from kubku.tasks import Family

CONTROLS = (
    "always_yes",
    "always_no",
    "always_unknown",
    "random_answers",
    "dictionary",
    "nearest_neighbour",
    "generator_oracle",
)
GRADIENT = ("mlp", "cnn", "gru", "transformer")
CONTEXT = ("gru_context", "transformer_context")
GROWNET = ("grownet_lookup", "grownet_vote", "grownet_two_layer")
OF_FAMILY = ("cnn", "generator_oracle")
"""Those that depend on the family; the others are the same program for each."""
NAMES = (*GRADIENT, *CONTEXT, *GROWNET, *CONTROLS)


def make(name: str, family: Family, training: Training) -> Learner:
    """The learner of that name for a family.

    Raises:
      ValueError: there is no such learner, or it can't handle the family.
    """
    if name in CONTROLS:
        return controls(family, EXPOSURES)[name]
    if name in GROWNET:
        return getattr(importlib.import_module("kubku.grownet.learners"), name)()
    if name == "cnn" and not spatial(family):
        raise ValueError(
            f"learner.names: cnn needs a family laid out in space; {family.name} isn't"
        )
    makers: dict[str, Callable[[], Learner]] = {
        "mlp": lambda: gradient_learner(MLP(), features, chunk=8),
        "cnn": lambda: gradient_learner(CNN(family.canvas), features, chunk=8),
        "gru": lambda: gradient_learner(GRU(), token_features, chunk=8),
        "transformer": lambda: gradient_learner(Transformer(), token_features, chunk=8),
        "gru_context": lambda: context_learner(GRUReader(), chunk=64),
        "transformer_context": lambda: context_learner(TransformerReader(), chunk=32),
    }
    if name not in makers:
        raise ValueError(
            f"learner.names: no learner is called {name!r}; there are {', '.join(NAMES)}"
        )
    learner = makers[name]()
    bases = base_states.of(learner, training)
    if name in CONTEXT:
        # Reading is only learnt by being trained through it.
        bases.pop("marginal")
    return learner._replace(bases=bases)


def spatial(family: Family) -> bool:
    """Whether the family's attributes lie in space, as `cnn` needs."""
    return family.canvas != (0, 0)


def custom(target: str) -> Learner:
    """A learner of the user's own.

    Args:
      target: "module:Name"; calling Name() gives an object with the functions `init(key)`,
        `learn(state, sample)` and `answer(state, query)` of `Learner`, and, where it has them,
        `bases`, `trials` and `chunk`.

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
    return Learner(
        made.init,
        made.learn,
        made.answer,
        getattr(made, "bases", {"own": None}),
        getattr(made, "trials", ({},)),
        getattr(made, "chunk", 16),
    )
