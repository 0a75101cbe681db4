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
from kubku.base_states import Outer, Through, Training
from kubku.grownet.eye import Switches
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import (
    BASE,
    DERIVED,
    EXPOSURES,
    FACTS,
    FRAME,
    VALUES,
    Learner,
    Sizes,
    features,
    token_features,
)
from kubku.learners import controls, recall, tabular
from kubku.learners.context import GRUReader, TransformerReader, context_learner
from kubku.learners.custom import custom
from kubku.learners.fast_weights import fast_weights
from kubku.learners.gradient import (
    CNN,
    GRU,
    MLP,
    Transformer,
    gradient_learner,
    one_step,
    one_step_of_mlp,
)
from kubku.learners.holographic import holographic
from kubku.learners.hopfield import hopfield
from kubku.learners.patterns import by_nearest_pattern
from kubku.learners.rank_one import rank_one
from kubku.outer import outer as best_outer
from kubku.tasks import Family

Group = Literal[
    "gradient",
    "reader",
    "memory",
    "grownet",
    "replaying",
    "ablation",
    "control",
    "own",
    "language model",
]
Make = Callable[[Family, Training, Outer | None], Learner]

BATCH = 16
"""Samples of an update for which `Entry.milliseconds` was measured."""
WANTS_GPU = 8.0
"""Milliseconds of an update beyond which the replicates of a study take a CPU hours."""


@dataclass(frozen=True)
class Entry:
    """One learner.

    Attributes:
      group: what kind it is, for legends and tables.
      make: (family, how much its base states are trained, how) -> Learner; None for what isn't made
        of these.
      milliseconds: that an update of its base state `meta` on `BATCH` samples takes a CPU core; 0
        where nothing is trained.
      spatial: it needs a family whose attributes lie in space, or that shows frames.
      shown: it needs a family that shows frames; told: one that doesn't.
      needs_rules: it needs a family whose rules are known, and finds those of its replicate in its
        state's `rules`.
      usual: it has room for attributes and values of the usual `Sizes` alone.
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
    milliseconds: float = 0.0
    spatial: bool = False
    shown: bool = False
    told: bool = False
    needs_rules: bool = False
    usual: bool = False
    of_family: bool = False
    slow: bool = False
    grows: bool = False
    needs_target: bool = False
    asks_model: bool = False
    pure: bool = True

    @property
    def wants_gpu(self) -> bool:
        """Whether a CPU takes minutes for each of its base states."""
        return self.milliseconds > WANTS_GPU

    def can_handle(self, family: Family) -> bool:
        """Whether the family has what the learner needs."""
        return (
            (family.is_spatial or family.is_shown or not self.spatial)
            and (family.has_rules or not self.needs_rules)
            and (family.sizes.is_usual or not self.usual)
            and not (self.told if family.is_shown else self.shown)
        )


def _network(
    network: Callable[[Family], nn.Module],
    encode: Any,
    *,
    replayed: int = 0,
    shortcut: Callable[[Sizes], Through] | None = None,
) -> Make:
    """A network that takes gradient steps; `replayed` items of other samples with each sample.
    `shortcut` is a quicker way through a step of it.
    """

    def make(family: Family, training: Training, outer: Outer | None) -> Learner:
        assert outer is not None
        module, encoded = network(family), partial(encode, sizes=family.sizes)
        learner = gradient_learner(module, encoded, 8, replayed=replayed)
        through = shortcut(family.sizes) if shortcut else one_step(module, encoded)
        bases = base_states.of(learner, training, outer, through)
        if replayed:
            bases = base_states.prepared(bases, base_states.replay)
        return learner._replace(bases=bases)

    return make


def _mlp(*, replayed: int = 0) -> Make:
    return _network(
        lambda family: MLP(),
        features,
        replayed=replayed,
        shortcut=one_step_of_mlp,
    )


def _read(
    made: Learner, training: Training, outer: Outer | None, through: Through | None = None
) -> Learner:
    """With the base states of what reads a sample into its state."""
    assert outer is not None
    bases = base_states.of(made, training, outer, through)
    bases.pop("marginal")  # reading is only learnt by being trained through it
    return made._replace(bases=bases)


def _reader(network: Callable[[], nn.Module], chunk: int) -> Make:
    """A network that reads the sample into a state."""
    return lambda family, training, outer: _read(
        context_learner(network(), chunk, family.sizes), training, outer
    )


def _reading(family: Family, learner: Learner) -> Learner:
    """One that reads numbers, for a family that tells them or shows frames."""
    return by_nearest_pattern(learner) if family.is_shown else learner


def _recalling(memory: Callable[[Sizes], Learner]) -> Make:
    """A memory and a network that reads what it recalls."""

    def make(family: Family, training: Training, outer: Outer | None) -> Learner:
        learner = memory(family.sizes)
        return _reading(family, _read(learner, training, outer, recall.through(learner)))

    return make


def _rank_one(family: Family, training: Training, outer: Outer | None) -> Learner:
    learner, fit = rank_one(family.sizes)
    learner = _read(learner, training, outer, recall.through(learner))
    fitted = base_states.prepared(
        {"meta": learner.bases["meta"]}, lambda state, samples, key: fit(state, samples)
    )
    return _reading(family, learner._replace(bases={"random": None, **fitted}))


def _table(make: Callable[[Sizes], Learner]) -> Make:
    """One that reads attributes and values as numbers, with as much room as the family needs."""
    return lambda family, training, outer: _reading(family, make(family.sizes))


def _plain(make: Callable[[], Learner]) -> Make:
    """One that depends on nothing."""
    return lambda family, training, outer: make()


def _grownet(**off: bool) -> Make:
    """GrowNet with some of its ideas switched off."""
    return lambda family, training, outer: grownet(family.is_shown, Switches(**off))


def _ablation(shown: bool = False, **off: bool) -> Entry:
    return Entry("ablation", _grownet(**off), shown=shown, usual=True)


def _cnn(family: Family) -> nn.Module:
    return CNN(FRAME, 1) if family.is_shown else CNN(family.canvas, VALUES)


def _memory(make: Make) -> Entry:
    """A memory, read by a network like the one that reads the dictionary."""
    return Entry("memory", make, usual=True)


def _control(make: Callable[[], Learner]) -> Entry:
    return Entry("control", _plain(make))


LEARNERS = {
    "mlp": Entry("gradient", _mlp()),
    "cnn": Entry(
        "gradient",
        _network(_cnn, features),
        milliseconds=69.0,
        spatial=True,
        of_family=True,
    ),
    "gru": Entry(
        "gradient",
        _network(lambda family: GRU(), token_features),
        milliseconds=38.0,
    ),
    "transformer": Entry(
        "gradient",
        _network(lambda family: Transformer(), token_features),
        milliseconds=140.0,
        slow=True,
    ),
    # It keeps as many items as a sample states facts; of words, not of frames.
    "mlp_replay": Entry("replaying", _mlp(replayed=FACTS), told=True),
    "gru_context": Entry("reader", _reader(GRUReader, 64), milliseconds=9.0),
    "transformer_context": Entry("reader", _reader(TransformerReader, 32), milliseconds=32.0),
    "fast_weights": _memory(_recalling(fast_weights)),
    "rank_one": _memory(_rank_one),
    "hopfield": _memory(_recalling(hopfield)),
    "holographic": _memory(_recalling(holographic)),
    "grownet": Entry("grownet", _grownet(), grows=True, usual=True),
    "grownet_lookup": Entry("grownet", _plain(grownet_lookup), told=True, usual=True),
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
    "random_answers": Entry("control", _table(lambda sizes: controls.random_answers())),
    "dictionary": Entry("control", _table(tabular.dictionary)),
    "pair_counts": Entry("control", _table(tabular.pair_counts), usual=True),
    "dictionary_mlp": Entry("control", _recalling(tabular.dictionary_reader), usual=True),
    "nearest_neighbour": Entry(
        "control", _table(lambda sizes: controls.nearest_neighbour(EXPOSURES))
    ),
    "question_only": Entry("control", _table(controls.question_only)),
    "forced_choice": Entry("control", _table(controls.forced_choice)),
    "generator_oracle": Entry(
        "control",
        lambda family, training, outer: controls.generator_oracle(family),
        needs_rules=True,
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
      outer: how, if otherwise than `kubku.outer` says.
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
        few = f"of {BASE} attributes that can be stated, {DERIVED} others, {VALUES} values at most"
        needs = {
            "laid out in space": entry.spatial and not (family.is_spatial or family.is_shown),
            "that shows frames": entry.shown and not family.is_shown,
            "that tells statements": entry.told and family.is_shown,
            "whose rules are known": entry.needs_rules and not family.has_rules,
            few: entry.usual and not family.sizes.is_usual,
        }
        lacking = ", ".join(need for need, lacks in needs.items() if lacks)
        raise ValueError(f"{name} needs a family {lacking}; {family.name} is none")
    return entry.make(family, training, outer or best_outer(name, family.name))
