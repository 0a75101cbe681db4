"""All learners by the names they have in results, and what each needs, as data."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from kubku import base_states
from kubku.base_states import Outer, Training
from kubku.grownet import learners as grownet
from kubku.halo import EXPOSURES, FACTS, Learner, features, token_features
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.controls import controls
from kubku.learners.gradient import CNN, GRU, MLP, Transformer, gradient_learner, one_step
from kubku.outer import OUTER
from kubku.tasks import Family

Group = Literal["gradient", "replay", "context", "grownet", "ablated", "control", "own", "model"]


class Given(NamedTuple):
    """What a learner is made from.

    Attributes:
      family: what it is to learn from.
      training: how much its base states are trained.
      outer: how, if otherwise than its entry says.
      target: the user's own, as "module:Name"; for a learner that needs it.
    """

    family: Family
    training: Training
    outer: Outer | None = None
    target: str | None = None


@dataclass(frozen=True)
class Entry:
    """What is known of a learner before it is made.

    Attributes:
      group: what kind it is: takes gradient steps, replays others' items while it does, reads into
        a state, GrowNet, GrowNet without a part, control, the user's own, a language model.
      make: from what is given to the learner; None for what isn't one of ours to make.
      spatial: it needs a family whose attributes lie in space.
      needs_rules: it needs a family's rules, which a user's file of samples doesn't have.
      of_family: its programs depend on the family; the others' are the same for each family.
      slow: it is asked, and tuned, on the few samples that the budget has for slow ones.
      needs_target: it is made from the user's own "module:Name".
      asks_model: a language model answers. It has neither base states nor replicates.
      pure: its base states are pure functions, so that those of all replicates may be made by one
        vectorised program.
      outer: how its base states are trained; None where it is no network.
      growth: counts how its base state grew, see `growth_history`; None where nothing grows or
        nobody counts.
    """

    group: Group
    make: Callable[[Given], Learner] | None
    spatial: bool = False
    needs_rules: bool = False
    of_family: bool = False
    slow: bool = False
    needs_target: bool = False
    asks_model: bool = False
    pure: bool = True
    outer: Outer | None = None
    growth: Callable[..., tuple[grownet.History, Any]] | None = None

    def handles(self, family: Family) -> bool:
        """Whether the family has what it needs."""
        return (family.spatial or not self.spatial) and (family.has_rules or not self.needs_rules)


class _Network(NamedTuple):
    """A network, how a statement is encoded for it, and `Learner.chunk`."""

    make: Callable[[Family], Any]
    encode: Callable[..., Any]
    chunk: int


_MLP = _Network(lambda family: MLP(), features, 8)
_CNN = _Network(lambda family: CNN(family.canvas), features, 8)
_GRU = _Network(lambda family: GRU(), token_features, 8)
_TRANSFORMER = _Network(lambda family: Transformer(), token_features, 8)


def _gradient(network: _Network, outer: Outer, given: Given) -> Learner:
    return _taking_steps(network, outer, given, replayed=0)


def _replay(network: _Network, outer: Outer, given: Given) -> Learner:
    # It keeps as many items as a sample states facts.
    learner = _taking_steps(network, outer, given, replayed=FACTS)
    return learner._replace(bases=base_states.replaying(learner.bases))


def _taking_steps(network: _Network, outer: Outer, given: Given, replayed: int) -> Learner:
    made, encode, chunk = network.make(given.family), network.encode, network.chunk
    learner = gradient_learner(made, encode, chunk, replayed=replayed)
    through = one_step(made, encode)
    bases = base_states.of(learner, given.training, given.outer or outer, through)
    return learner._replace(bases=bases)


def _context(reader: Callable[[], Any], chunk: int, outer: Outer, given: Given) -> Learner:
    learner = context_learner(reader(), chunk=chunk)
    bases = base_states.of(learner, given.training, given.outer or outer)
    # Reading is only learnt by being trained through it.
    bases.pop("marginal")
    return learner._replace(bases=bases)


def _network(
    group: Group, make: Callable[..., Learner], of: str, *parts: Any, **needs: Any
) -> Entry:
    outer = OUTER[of]
    return Entry(group, partial(make, *parts, outer), outer=outer, **needs)


def _grownet(group: Group, make: Callable[[], Learner], **needs: Any) -> Entry:
    return Entry(group, lambda given: make(), **needs)


def _control(name: str, **needs: Any) -> Entry:
    return Entry("control", lambda given: controls(given.family, EXPOSURES)[name], **needs)


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
    if exposure not in ("gradient", "state", "none"):
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


LEARNERS: Mapping[str, Entry] = MappingProxyType(
    {
        "mlp": _network("gradient", _gradient, "mlp", _MLP),
        "cnn": _network("gradient", _gradient, "cnn", _CNN, spatial=True, of_family=True),
        "gru": _network("gradient", _gradient, "gru", _GRU),
        "transformer": _network("gradient", _gradient, "transformer", _TRANSFORMER, slow=True),
        "mlp_replay": _network("replay", _replay, "mlp", _MLP),
        "gru_context": _network("context", _context, "gru_context", GRUReader, 64),
        "transformer_context": _network(
            "context", _context, "transformer_context", TransformerReader, 32
        ),
        "grownet_lookup": _grownet("grownet", grownet.grownet_lookup),
        "grownet_vote": _grownet("grownet", grownet.grownet_vote),
        "grownet_two_layer": _grownet(
            "grownet", grownet.grownet_two_layer, growth=grownet.growth_history
        ),
        "grownet_no_growth": _grownet("ablated", grownet.grownet_no_growth),
        "grownet_one_attribute": _grownet("ablated", grownet.grownet_one_attribute),
        "grownet_unweighted": _grownet("ablated", grownet.grownet_unweighted),
        "grownet_windowed": Entry(
            "ablated",
            lambda given: grownet.grownet_windowed(given.family.canvas),
            spatial=True,
            of_family=True,
        ),
        "grownet_without_novelty": _grownet("ablated", grownet.grownet_without_novelty),
        "grownet_never_told_unknown": _grownet("ablated", grownet.grownet_never_told_unknown),
        "always_yes": _control("always_yes"),
        "always_no": _control("always_no"),
        "always_unknown": _control("always_unknown"),
        "random_answers": _control("random_answers"),
        "dictionary": _control("dictionary"),
        "nearest_neighbour": _control("nearest_neighbour"),
        "question_only": _control("question_only"),
        "generator_oracle": _control("generator_oracle", needs_rules=True, of_family=True),
        "custom": Entry(
            "own",
            lambda given: custom(given.target or ""),
            needs_target=True,
            pure=False,
        ),
        "language_model": Entry("model", None, asks_model=True),
    }
)
"""In the order in which they are told of."""


def named(*groups: Group) -> tuple[str, ...]:
    """The names of all learners of these groups, in order."""
    return tuple(name for name, entry in LEARNERS.items() if entry.group in groups)


NAMES = named("gradient", "replay", "context", "grownet", "ablated", "control")
"""All that come with this package."""


def make(
    name: str,
    family: Family,
    training: Training,
    outer: Outer | None = None,
    target: str | None = None,
) -> Learner:
    """The learner of that name for a family.

    Args:
      name: one of `LEARNERS` but for language models.
      family: what it is to learn from.
      training: how much its base states are trained.
      outer: how, if otherwise than its entry says.
      target: the user's own, as "module:Name".

    Raises:
      ValueError: there is no such learner, or it can't handle the family.
    """
    entry = LEARNERS.get(name)
    if entry is None or entry.make is None:
        raise ValueError(
            f"no learner that can be made is called {name!r}; there are {', '.join(NAMES)}"
        )
    if not entry.handles(family):
        needed = "laid out in space" if entry.spatial else "with rules"
        raise ValueError(f"{name} needs a family {needed}, and {family.name} is none")
    return entry.make(Given(family, training, outer, target))
