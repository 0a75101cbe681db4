"""What a family of tasks is: what is true in it, what follows, and how it is put into words.

A family draws what is true, and judges: given the stated facts, which questions are settled?
`kubku.tasks.generation` builds samples and halos from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from kubku.halo import (
    BASE,
    VALUES,
    Sample,
    Samples,
    Sizes,
    Statement,
)

NO, UNKNOWN, YES = (int(answer) for answer in (Answer.NO, Answer.UNKNOWN, Answer.YES))


class Stereotype(NamedTuple):
    """Who has this value of the cue 'must' have that value of the target.

    Attributes:
      cue: a base attribute.
      target: a base or derived attribute.
      values: for each value of the cue the stereotypical value of the target, or -1 for none.
    """

    cue: int
    target: int
    values: tuple[int, ...]


class Family(NamedTuple):
    """A family of tasks.

    Attributes:
      name: as in results.
      arity: how many values each base attribute has, 3 to VALUES; three at least, because a
        question must be able to deny with a value that the exposure didn't use for contrast.
      draw: (key, skew) -> i32[BASE], what is true. With probability `skew` a stereotype's target
        follows its cue; with 0 the two are independent, as in every evaluation.
      judge: (i32[BASE] values, bool[BASE] stated) -> i32[ATTRIBUTES, VALUES], the right answer to
        'is attribute a value v?' given the stated facts alone.
      reads: for each derived attribute the base attributes that its rule reads. What a sample
        states of them is the instance of the rule. No two splits ask about the same one, whether
        it settles the question or not; bias traps, which nothing is trained on, aside. What one
        stated attribute settles by itself it settles in other instances too: only where several
        must come together is the instance new in all that matters.
      stereotypes: at least two with different targets and neither target the other's cue, a
        protected attribute the cue of one of them. None comes before one that its cue is the
        target of.
      protected: the attributes in one of which two samples of a pair differ.
      canvas: (rows, columns): the first rows * columns attributes lie in space, row by row; (0, 0)
        where a family has no space.
      clause: for each attribute a pattern with {e} and, unless derived, {v}; a derived attribute
        has two, joined by '|': it doesn't hold, it holds.
      words: for each base attribute the words of its values.
      names: what entities are called, one name for each.
      sizes: how much room it needs.
      paint: (key, samples) -> samples with frames, where it shows statements instead of telling
        them; else None.
    """

    name: str
    arity: tuple[int, ...]
    draw: Callable[[jax.Array, jax.Array | float], jax.Array]
    judge: Callable[[jax.Array, jax.Array], jax.Array]
    reads: tuple[tuple[int, ...], ...]
    stereotypes: tuple[Stereotype, ...]
    protected: tuple[int, ...]
    canvas: tuple[int, int]
    clause: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    sizes: Sizes = Sizes()
    paint: Callable[[jax.Array, Samples], Samples] | None = None

    @property
    def is_shown(self) -> bool:
        """Whether its statements are shown in frames."""
        return self.paint is not None

    @property
    def is_spatial(self) -> bool:
        """Whether its attributes lie in space."""
        return self.canvas != (0, 0)

    @property
    def has_rules(self) -> bool:
        """Whether it knows what follows from what is stated, and so can draw samples; a user's
        file of samples doesn't.
        """
        return bool(self.reads)


class Split(NamedTuple):
    """Which entities and rule instances a split may use: no two splits share either.

    Attributes:
      number: folded into the key, so that splits are independent.
      entities: first and last + 1.
      instances: for each rule instance's number modulo 4, whether the split may ask about it.
    """

    number: int
    entities: tuple[int, int]
    instances: tuple[bool, bool, bool, bool]


SPLITS = {
    "pretrain": Split(0, (0, 48), (True, True, False, False)),
    "validation": Split(1, (48, 72), (False, False, True, False)),
    "test": Split(2, (72, 96), (False, False, False, True)),
}


def below(u: jax.Array, n: jax.Array | int) -> jax.Array:
    """Uniform numbers in [0, 1) as integers in [0, n).

    A draw takes its randomness as one array and cuts it up so: one generator call compiles in a
    fraction of the time of twenty.
    """
    return jnp.minimum((u * n).astype(jnp.int32), n - 1)


def stated_only(values: jax.Array, stated: jax.Array) -> jax.Array:
    """The judgement of base attributes that say nothing about each other: i32[BASE, VALUES]."""
    settled = jnp.where(values[:, None] == jnp.arange(VALUES), YES, NO)
    return jnp.where(stated[:, None], settled, UNKNOWN)


def affirm_and_deny(holds: jax.Array) -> jax.Array:
    """Answers to 'does it hold?' as i32[DERIVED, VALUES]: value 0 asks the denial, 1 the truth."""
    # NO = 0, UNKNOWN = 1, YES = 2: Kleene's negation is 2 - x.
    return jnp.stack([2 - holds, holds] + [jnp.full_like(holds, NO)] * (VALUES - 2), axis=-1)


def follow(
    stereotypes: tuple[Stereotype, ...], values: jax.Array, u: jax.Array, skew: jax.Array | float
) -> jax.Array:
    """Values of someone in a world in which the stereotypes of base attributes are `skew` true.

    A target of several stereotypes follows any of them, by chance.

    Args:
      stereotypes: in the order of `Family.stereotypes`.
      values: i32[BASE], drawn without them.
      u: f32[2, BASE], uniform in [0, 1).
      skew: probability that a target follows.
    """
    for target in dict.fromkeys(s.target for s in stereotypes if s.target < BASE):
        own = [s for s in stereotypes if s.target == target]
        said = jnp.stack([jnp.array(s.values)[values[s.cue]] for s in own])
        usual = said[below(u[0, target], len(own))]
        values = values.at[target].set(jnp.where(u[1, target] < skew, usual, values[target]))
    return values


def say(family: Family, statement: Statement) -> str:
    """A statement or question in words; takes scalars (of NumPy or Python)."""
    template, entity, attribute, value = (int(part) for part in statement[:4])
    if attribute >= BASE:
        clause = family.clause[attribute].split("|")[value].format(e=family.names[entity])
    else:
        clause = family.clause[attribute].format(
            e=family.names[entity], v=family.words[attribute][value]
        )
    patterns = (
        "{c}.",
        "We are told that {c}.",
        "Is it true that {c}?",
        "Going by what was said, can it be asserted that {c}?",
    )
    text = patterns[template].format(c=clause)
    return text[0].upper() + text[1:]


def story(family: Family, sample: Sample) -> str:
    """The facts of one sample as a short text; what isn't so is left unsaid."""
    exposure = jax.tree.map(np.asarray, sample.exposure)
    told = np.flatnonzero((np.asarray(sample.label) == YES) & np.asarray(sample.shown))
    return " ".join(say(family, Statement(*(part[i] for part in exposure[:4]))) for i in told)
