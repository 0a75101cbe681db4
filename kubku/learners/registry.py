"""Every learner as data: what it is, what it needs, how it is made.

A learner of your own is a class named on the command line, see `custom`; one of ours is an entry
of `LEARNERS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from flax import linen as nn

from kubku import base_states
from kubku.base_states import Outer, Training
from kubku.grownet.eye import Switches
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import EXPOSURES, FACTS, FRAME, VALUES, Learner, features, token_features
from kubku.learners import controls, tabular
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.custom import custom
from kubku.learners.gradient import CNN, GRU, MLP, Transformer, gradient_learner, one_step
from kubku.learners.patterns import by_nearest_pattern
from kubku.outer import OUTER
from kubku.tasks import Family

Group = Literal[
    "gradient", "reader", "grownet", "replaying", "ablation", "control", "own", "language model"
]
Make = Callable[[Family, Training, Outer | None], Learner]


@dataclass(frozen=True)
class Entry:
    """One learner.

    Attributes:
      group: what kind it is, for legends and tables.
      make: (family, how much its base states are trained, how) -> Learner; how: None for
        `outer`'s. None for what isn't made of these.
      outer: how its base states are trained, if it is a network.
      spatial: it needs a family whose attributes lie in space, or that shows frames.
      shown: it needs a family that shows frames; told: one that doesn't.
      needs_rules: it needs a family whose rules are known, and finds those of its replicate in its
        state's `rules`.
      of_family: it is another program for each family.
      slow: it is asked `budget.slow` samples.
      grows: its base state `grown` is counted while it grows, for the picture.
      needs_target: it is the user's own, see `custom`.
      asks_model: a language model answers; it has neither base states nor replicates.
      pure: its base states are pure functions, so that those of all replicates may be made by one
        vectorised program.
    """

    group: Group
    make: Make | None
    outer: Outer | None = None
    spatial: bool = False
    shown: bool = False
    told: bool = False
    needs_rules: bool = False
    of_family: bool = False
    slow: bool = False
    grows: bool = False
    needs_target: bool = False
    asks_model: bool = False
    pure: bool = True

    def can_handle(self, family: Family) -> bool:
        """Whether the family has what the learner needs."""
        return (
            (family.is_spatial or family.is_shown or not self.spatial)
            and (family.has_rules or not self.needs_rules)
            and not (self.told if family.is_shown else self.shown)
        )


def _network(network: Callable[[Family], nn.Module], encode: Any, *, replayed: int = 0) -> Make:
    """A network that takes gradient steps; `replayed` items of other samples with each sample."""

    def make(family: Family, training: Training, outer: Outer | None) -> Learner:
        assert outer is not None
        module = network(family)
        learner = gradient_learner(module, encode, 8, replayed=replayed)
        bases = base_states.of(learner, training, outer, one_step(module, encode))
        return learner._replace(bases=base_states.replaying(bases) if replayed else bases)

    return make


def _reader(network: Callable[[], nn.Module], chunk: int) -> Make:
    """A network that reads the sample into a state."""

    def make(family: Family, training: Training, outer: Outer | None) -> Learner:
        assert outer is not None
        learner = context_learner(network(), chunk)
        bases = base_states.of(learner, training, outer)
        # Reading is only learnt by being trained through it.
        bases.pop("marginal")
        return learner._replace(bases=bases)

    return make


def _dictionary_mlp(family: Family, training: Training, outer: Outer | None) -> Learner:
    assert outer is not None
    learner = tabular.dictionary_reader()
    bases = base_states.of(learner, training, outer)
    bases.pop("marginal")  # without a dictionary there is nothing to read
    return _reading(family, learner._replace(bases=bases))


def _reading(family: Family, learner: Learner) -> Learner:
    """One that reads numbers, for a family that tells them or shows frames."""
    return by_nearest_pattern(learner) if family.is_shown else learner


def _plain(make: Callable[[], Learner]) -> Make:
    """One that depends on nothing."""
    return lambda family, training, outer: make()


def _grownet(**off: bool) -> Make:
    """GrowNet with some of its ideas switched off."""
    return lambda family, training, outer: grownet(family.is_shown, Switches(**off))


def _ablation(shown: bool = False, **off: bool) -> Entry:
    return Entry("ablation", _grownet(**off), shown=shown)


def _cnn(family: Family) -> nn.Module:
    return CNN(FRAME, 1) if family.is_shown else CNN(family.canvas, VALUES)


def _table(make: Callable[[], Learner]) -> Entry:
    """A control that reads attributes and values as numbers."""
    return Entry("control", lambda family, training, outer: _reading(family, make()))


def _control(make: Callable[[], Learner]) -> Entry:
    return Entry("control", _plain(make))


LEARNERS = {
    "mlp": Entry("gradient", _network(lambda family: MLP(), features), OUTER["mlp"]),
    "cnn": Entry(
        "gradient",
        _network(_cnn, features),
        OUTER["cnn"],
        spatial=True,
        of_family=True,
    ),
    "gru": Entry("gradient", _network(lambda family: GRU(), token_features), OUTER["gru"]),
    "transformer": Entry(
        "gradient",
        _network(lambda family: Transformer(), token_features),
        OUTER["transformer"],
        slow=True,
    ),
    # It keeps as many items as a sample states facts.
    "mlp_replay": Entry(
        "replaying", _network(lambda family: MLP(), features, replayed=FACTS), OUTER["mlp"]
    ),
    "gru_context": Entry("reader", _reader(GRUReader, 64), OUTER["gru_context"]),
    "transformer_context": Entry(
        "reader", _reader(TransformerReader, 32), OUTER["transformer_context"]
    ),
    "grownet": Entry("grownet", _grownet(), grows=True),
    "grownet_lookup": Entry("grownet", _plain(grownet_lookup), told=True),
    # Slots answer with the count of their hits.
    "grownet_counts": _ablation(strength=False),
    # Pixels' thresholds start at 0 (T0).
    "grownet_no_imprint": _ablation(shown=True, imprint=False),
    # Pixels' thresholds stay where they started (T2).
    "grownet_no_homeostasis": _ablation(shown=True, homeostasis=False),
    # No layer grows.
    "grownet_no_growth": _ablation(growth=False),
    # Columns hear whole frames.
    "grownet_no_windows": _ablation(shown=True, windows=False),
    # Doubt is a check whether an attribute that can be stated was, and never novelty.
    "grownet_stated_check": _ablation(novelty=False),
    "always_yes": _control(controls.always_yes),
    "always_no": _control(controls.always_no),
    "always_unknown": _control(controls.always_unknown),
    "random_answers": _table(controls.random_answers),
    "dictionary": _table(tabular.dictionary),
    "pair_counts": _table(tabular.pair_counts),
    # As long as the networks are trained, and as the MLP is.
    "dictionary_mlp": Entry("control", _dictionary_mlp, OUTER["mlp"]),
    "nearest_neighbour": _table(partial(controls.nearest_neighbour, EXPOSURES)),
    "question_only": _table(controls.question_only),
    "forced_choice": _table(controls.forced_choice),
    "generator_oracle": Entry(
        "control",
        lambda family, training, outer: controls.generator_oracle(family),
        needs_rules=True,
        of_family=True,
    ),
}
"""All learners of ours by the names they have in results."""

KNOWN = LEARNERS | {
    "custom": Entry("own", None, needs_target=True, pure=False),
    "language_model": Entry("language model", None, told=True, asks_model=True),
}
"""With them whatever else can be asked for."""


def in_group(*groups: Group) -> tuple[str, ...]:
    """The names of the learners of these kinds, in the order of `LEARNERS`."""
    return tuple(name for name, entry in LEARNERS.items() if entry.group in groups)


def make(
    name: str,
    family: Family,
    training: Training,
    outer: Outer | None = None,
    target: str | None = None,
) -> Learner:
    """The learner of that name for a family.

    Args:
      name: a key of `KNOWN`, but no language model's.
      family: what it is to learn from.
      training: how much its base states are trained.
      outer: how, if otherwise than its entry says.
      target: the user's own, as "module:Name", for a learner that needs it.

    Raises:
      ValueError: there is no such learner, or it can't handle the family, or the target can't be
        imported.
    """
    if name not in KNOWN:
        raise ValueError(f"no learner is called {name!r}; there are {', '.join(KNOWN)}")
    entry = KNOWN[name]
    if entry.needs_target:
        return custom(target or "")
    if entry.make is None:
        raise ValueError(f"{name} is asked and not made")
    if not entry.can_handle(family):
        needed = "whose rules are known"
        for needs, what in (
            (entry.spatial, "laid out in space"),
            (entry.shown, "that shows frames"),
            (entry.told, "that tells statements"),
        ):
            needed = what if needs else needed
        raise ValueError(f"{name} needs a family {needed}; {family.name} is none")
    return entry.make(family, training, outer or entry.outer)
