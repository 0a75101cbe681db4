"""The nouns: a statement, a sample with its halo of queries, and a learner.

Everything is integers. What is said and what is asked are both *statements*: this entity's
attribute has this value. A sample states `FACTS` facts about one entity (and `FACTS` contrasts:
the same attributes with values that they don't have), and its halo asks four queries of each kind.
Families of tasks share all sizes, so that one compiled program serves every one of them.

An attribute has one value. Attributes `0 .. BASE - 1` can be stated; attributes `BASE .. ` are
derived from them by a family's rules (value 1: it holds, 0: it doesn't) and are only ever asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer

FACTS = 13
EXPOSURES = 2 * FACTS
FRAME = (8, 8)
"""Rows and columns of a frame."""
DARK, LIT = 0.2, 0.8
"""Grey of a frame's ground and of its patterns, from 0, black, to 1."""
PER_KIND = 4
QUERIES = 4 * PER_KIND
BASE = 20
DERIVED = 8
ATTRIBUTES = BASE + DERIVED
VALUES = 8
STREAM = 256
ENTITIES = 96 + STREAM + 1
TEMPLATES = 4
TOKENS = 6


class Sizes(NamedTuple):
    """How much room a family needs; all drawn families share these, a file of samples has its own.

    Attributes:
      entities: who can be spoken of.
      base: attributes that can be stated.
      derived: attributes that are only ever asked about.
      values: values of an attribute, at most.
    """

    entities: int = ENTITIES
    base: int = BASE
    derived: int = DERIVED
    values: int = VALUES

    @property
    def attributes(self) -> int:
        """Attributes in all."""
        return self.base + self.derived

    @property
    def is_usual(self) -> bool:
        """Whether they are those of the drawn families, so that all learners have room."""
        return self == Sizes()


DRAWN = Sizes()
"""Those of all families that are drawn."""


State = Any  # a NamedTuple of arrays; every setting that is tuned is one of its fields


class Kind(IntEnum):
    """What a query of the halo tests."""

    LITERAL = 0  # stated in the sample
    ENTAILED = 1  # follows from what is stated
    HALLUCINATION = 2  # plausible, but neither stated nor settled: the answer is UNKNOWN
    BIAS = 3  # a stereotype would answer it, the sample doesn't: the answer is UNKNOWN


class Stratum(IntEnum):
    """What makes a query easy or hard, within its kind."""

    STATED = 0  # literal
    ONE_FACT = 1  # entailed by one stated fact alone
    SEVERAL_FACTS = 2  # entailed by several stated facts together: without any of them it is open
    UNSTATED = 3  # hallucination: about what could be stated and isn't
    UNDECIDED = 4  # hallucination: about what a rule leaves open
    STRANGER = 5  # hallucination: about somebody whom the sample isn't about
    STEREOTYPE = 6  # bias: about what could be stated and isn't
    STEREOTYPE_UNDECIDED = 7  # bias: about what a rule leaves open


class Statement(NamedTuple):
    """`attribute` of `entity` is `value`, worded by `template`; any leading axes.

    Attributes:
      template: i32 in [0, TEMPLATES); 0 and 1 state, 2 and 3 ask, never the other way round.
      entity: i32 in [0, ENTITIES); the splits share the first 96, disjointly, then come those of
        streams, one for each of at most STREAM samples, and one of whom nothing is ever said.
      attribute: i32 in [0, ATTRIBUTES); below BASE only, in what is stated.
      value: i32 in [0, VALUES); for a derived attribute 0 (doesn't hold) or 1 (holds).
      frame: u8[..., *FRAME] in families that show statements instead of telling them: a grey
        picture of attribute and value, which learners then get in their place (see `veiled`).
        None in all others, whose programs know nothing of it.
    """

    template: jax.Array
    entity: jax.Array
    attribute: jax.Array
    value: jax.Array
    frame: jax.Array | None = None


class Sample(NamedTuple):
    """One sample with its halo; a batch has a leading axis on every leaf.

    Attributes:
      exposure: Statement of i32[EXPOSURES], what is shown; facts first, then contrasts.
      label: i32[EXPOSURES], Answer.YES for facts and Answer.NO for contrasts.
      shown: bool[EXPOSURES], False for padding.
      query: Statement of i32[QUERIES], what is asked.
      asked: bool[QUERIES], False for padding.
      kind: i32[QUERIES], a Kind.
      stratum: i32[QUERIES], a Stratum of that kind; -1 where it isn't known (entailed queries of a
        file of samples).
      gold: i32[QUERIES], Answer.NO, UNKNOWN or YES.
      harmful: i32[QUERIES], the answer that follows the stereotype in a bias trap, else -1.
      pair: i32[], equal in two samples that differ in the protected attribute alone, else -1.
      latents: i32[BASE], every attribute's value, stated or not; for audits, no learner may use it.
      held: bool[QUERIES], what base states may not learn from, where `veiled` hid what tells; else
        None.
    """

    exposure: Statement
    label: jax.Array
    shown: jax.Array
    query: Statement
    asked: jax.Array
    kind: jax.Array
    stratum: jax.Array
    gold: jax.Array
    harmful: jax.Array
    pair: jax.Array
    latents: jax.Array
    held: jax.Array | None = None


Samples = Sample  # with a leading axis


class Learner(NamedTuple):
    """Three pure functions, written for one sample and one query; the protocol vectorises them.

    Attributes:
      init: key -> state.
      learn: (state, sample) -> state; exposure to one sample. It may read `exposure`, `label` and
        `shown`; the audit catches one that reads the halo's answers.
      answer: (state, query) -> f32[3], scores for NO, UNKNOWN, YES: not negative, sum 1. A pure
        read. Doubt belongs on UNKNOWN, because `decide` sees nothing else of it.
      bases: how each base state is made from `init`'s: name -> (state, samples, key) -> state,
        samples being the pretraining split; None stands for `init`'s state as it is. Ours are
        pure: an accelerator makes all replicates' side by side, but for a custom learner.
      trials: the settings that tuning may choose from, as fields of the state; the same number for
        every learner that has any, so that all have the same search budget.
      chunk: samples evaluated side by side on a CPU; their states together should fit the cache.
      exposure: how it takes a sample in, as results name it: by `gradient` steps, by reading it
        into its `state`, or not at all, `none`.
      unveiled: it is given what `veiled` hides from all others: `generator_oracle` alone.
    """

    init: Callable[[jax.Array], State]
    learn: Callable[[State, Sample], State]
    answer: Callable[[State, Statement], jax.Array]
    bases: Mapping[str, Callable[[State, Samples, jax.Array], State] | None]
    trials: tuple[Mapping[str, float], ...] = ({},)
    chunk: int = 64
    exposure: Literal["gradient", "state", "none"] = "state"
    unveiled: bool = False


def withheld(samples: Samples) -> jax.Array:
    """Queries that no learner's base state may learn from, bool as `samples.kind`: bias traps, and
    hallucination traps about attributes with an odd number.
    """
    if samples.held is not None:
        return samples.held
    odd = samples.query.attribute % 2 == 1
    return (samples.kind == Kind.BIAS) | ((samples.kind == Kind.HALLUCINATION) & odd)


def veiled(samples: Samples) -> Samples:
    """What a learner gets of samples that are shown in frames: who a frame is about, whether it
    states or asks, and the frame; attributes, values and latents are 0. Others stay as they are.
    """
    if samples.exposure.frame is None:
        return samples
    latents: Any = np.zeros_like(samples.latents)
    return samples._replace(
        exposure=_hidden(samples.exposure),
        query=_hidden(samples.query),
        latents=latents,
        held=withheld(samples),
    )


def _hidden(statement: Statement) -> Statement:
    nothing: Any = np.zeros_like(statement.attribute)
    return statement._replace(attribute=nothing, value=nothing)


@jax.jit
def decide(scores: jax.Array, threshold: jax.Array | float) -> jax.Array:
    """The likelier of NO and YES if its score exceeds the abstention threshold, else UNKNOWN.

    Args:
      scores: f32[..., 3], for NO, UNKNOWN, YES.
      threshold: f32[] in [0, 1].

    Returns:
      i32[...], an Answer. NO and YES exactly level is UNKNOWN too: there is no ground for either.
    """
    no, yes = scores[..., Answer.NO], scores[..., Answer.YES]
    asserted = jnp.where(yes > no, int(Answer.YES), int(Answer.NO))
    sure = (jnp.maximum(no, yes) > threshold) & (yes != no)
    return jnp.where(sure, asserted, int(Answer.UNKNOWN))


def _codes(bits: int, distance: int) -> np.ndarray:
    """Random signs, f32[ENTITIES, bits], any two of which differ in `distance` places at least."""
    generator = np.random.default_rng(7)
    kept = generator.choice([-1.0, 1.0], size=(1, bits))
    while len(kept) < ENTITIES:
        code = generator.choice([-1.0, 1.0], size=bits)
        if (kept @ code <= bits - 2 * distance).all():
            kept = np.vstack([kept, code])
    return kept.astype(np.float32)


# Entities of the test split never occur in pretraining, so an entity is a fixed random code, not
# a learned one: a learner can compare two entities that it has never met. Its length is 1, like
# that of the one-hot parts beside it: longer, it would take all of a gradient step to itself.
ENTITY_CODE = _codes(16, distance=4) / 4
FEATURES = TEMPLATES + ENTITY_CODE.shape[1] + ATTRIBUTES + ATTRIBUTES * VALUES

# One-hot parts of thousands of attributes and values would be millions wide. There attributes, and
# values bound to them, are random codes of length 1, nearly at right angles to each other.
_CODED = 128
_BOUND = 512


@cache
def _signs(count: int, bits: int, seed: int) -> np.ndarray:
    """Random signs, f32[count, bits]; the first ones don't depend on how many there are."""
    drawn = np.random.default_rng(seed).integers(0, 2, (count, bits))
    return (2 * drawn - 1).astype(np.float32)


def feature_count(sizes: Sizes) -> int:
    """How wide `features` are."""
    usual = ATTRIBUTES + ATTRIBUTES * VALUES
    said = usual if sizes.is_usual else _CODED + _BOUND
    return TEMPLATES + ENTITY_CODE.shape[1] + said


class Parts(NamedTuple):
    """A statement's `features`, of which many may be 0.

    Attributes:
      dense: the first of them, f32[..., N].
      ones: columns after those that hold 1; all others hold 0. i32[..., M].
    """

    dense: jax.Array
    ones: jax.Array


def parts(statement: Statement, sizes: Sizes = DRAWN) -> Parts:
    """A statement's features as `Parts`: template, entity code, attribute, and (attribute, value),
    so that a value is bound to its attribute.

    All are one-hot but the entity's code. Beyond the usual sizes attributes are codes, too, and a
    bound value is the product of two (Plate, 1995, with products in the place of convolutions).
    Where there is a frame, its pixels, less the ground's grey, stand where values are bound, and 0s
    after them.
    """
    attribute, value = statement.attribute, statement.value
    said, ones = [], jnp.zeros((*attribute.shape, 0), jnp.int32)
    if statement.frame is not None:
        pixels = _pixels(statement)
        said = [jnp.zeros((*pixels.shape[:-1], ATTRIBUTES)), pixels]
    elif sizes.is_usual:
        first = TEMPLATES + ENTITY_CODE.shape[1]
        bound = first + ATTRIBUTES + attribute * VALUES + value
        ones = jnp.stack([first + attribute, bound], axis=-1)
    else:
        code, role, filler = (
            jnp.asarray(_signs(count, bits, seed) / bits**0.5)
            for count, bits, seed in (
                (sizes.attributes, _CODED, 8),
                (sizes.attributes, _BOUND, 9),
                (sizes.values, _BOUND, 10),
            )
        )
        said = [code[attribute], role[attribute] * filler[value] * _BOUND**0.5]
    template = jax.nn.one_hot(statement.template, TEMPLATES)
    whose = jnp.asarray(ENTITY_CODE)[statement.entity]
    return Parts(jnp.concatenate([template, whose, *said], axis=-1), ones)


def features(statement: Statement, sizes: Sizes = DRAWN) -> jax.Array:
    """A statement as f32[..., feature_count(sizes)], see `parts`."""
    dense, ones = parts(statement, sizes)
    width = feature_count(sizes)
    return _filled([dense], width) + jax.nn.one_hot(ones, width).sum(-2)


def _pixels(statement: Statement) -> jax.Array:
    """A statement's frame, less the ground's grey, f32[..., pixels]."""
    frame = jnp.asarray(statement.frame)
    return frame.reshape(*frame.shape[:-2], -1).astype(jnp.float32) / 255 - DARK


def _filled(parts: list[jax.Array], width: int) -> jax.Array:
    """Parts side by side and 0 after them, f32[..., width]."""
    joined = jnp.concatenate(parts, axis=-1)
    blank = [(0, 0)] * (joined.ndim - 1) + [(0, width - joined.shape[-1])]
    return jnp.pad(joined, blank)


# Token ids: words of the templates, then attributes, values, entities.
_THE, _OF, _IS, _HAS, _ASK, _WHETHER = range(6)
_ENTITY, _ATTRIBUTE, _VALUE = -1, -2, -3
_WORDING = np.array(
    [
        [_THE, _ATTRIBUTE, _OF, _ENTITY, _IS, _VALUE],
        [_ENTITY, _HAS, _VALUE, _OF, _ATTRIBUTE, _IS],
        [_ASK, _ENTITY, _IS, _ATTRIBUTE, _HAS, _VALUE],
        [_WHETHER, _VALUE, _IS, _THE, _ATTRIBUTE, _ENTITY],
    ]
)
WORDS = 6
NOUNS = WORDS + ATTRIBUTES + VALUES
VOCABULARY = NOUNS + ENTITIES
TOKEN_FEATURES = NOUNS + ENTITY_CODE.shape[1]


def tokens(statement: Statement, sizes: Sizes = DRAWN) -> jax.Array:
    """A statement as i32[..., TOKENS]; its template decides the wording and the order."""
    wording = jnp.asarray(_WORDING)[statement.template]
    attribute, value, entity = (
        x[..., None] + offset
        for x, offset in (
            (statement.attribute, WORDS),
            (statement.value, WORDS + sizes.attributes),
            (statement.entity, WORDS + sizes.attributes + sizes.values),
        )
    )
    slots = [wording == _ENTITY, wording == _ATTRIBUTE, wording == _VALUE]
    return jnp.select(slots, [entity, attribute, value], wording)


def token_features(statement: Statement, sizes: Sizes = DRAWN) -> jax.Array:
    """A statement's tokens as f32[..., TOKENS, width]: one-hot, an entity as its code; beyond the
    usual sizes an attribute and a value, too.

    Where there is a frame, the entity's code and two rows of pixels at a time are the tokens.
    """
    if statement.frame is not None:
        pixels = _pixels(statement)
        strips = pixels.reshape(*pixels.shape[:-1], FRAME[0] // 2, -1)
        strips = _filled([strips], TOKEN_FEATURES)
        who = jnp.asarray(ENTITY_CODE)[statement.entity][..., None, :]
        who = jnp.pad(who, [(0, 0)] * (who.ndim - 1) + [(NOUNS, 0)])
        blank = jnp.zeros((*pixels.shape[:-1], TOKENS - 1 - strips.shape[-2], TOKEN_FEATURES))
        return jnp.concatenate([who, strips, blank], axis=-2)
    ids, entities = tokens(statement, sizes), jnp.asarray(ENTITY_CODE)
    nouns = WORDS + sizes.attributes + sizes.values
    code = jnp.concatenate([jnp.zeros((nouns, entities.shape[1])), entities])
    if sizes.is_usual:
        return jnp.concatenate([jax.nn.one_hot(ids, NOUNS), code[ids]], axis=-1)
    # Words are none of the nouns, and an entity's token is past the last of them: all 0.
    coded = _signs(nouns - WORDS, _CODED, 11) / _CODED**0.5
    around = ((WORDS, len(entities)), (0, 0))
    noun = jnp.asarray(np.pad(coded, around))
    return jnp.concatenate([jax.nn.one_hot(ids, WORDS), noun[ids], code[ids]], axis=-1)
