"""What a family of tasks is: what is true in it, what follows, and how it is put into words.

A family draws its rules and what is true, and judges: given the stated facts, which questions are
settled? `kubku.tasks.generation` builds samples and halos from that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from kubku.halo import BASE, Sample, Sizes, Statement
from kubku.tasks import pictures, rules
from kubku.tasks.rules import Rules

NO, UNKNOWN, YES = (int(answer) for answer in (Answer.NO, Answer.UNKNOWN, Answer.YES))


class Stereotype(NamedTuple):
    """Who has this value of the cue 'must' have that value of the target.

    Attributes:
      cue: a base attribute.
      target: a base or derived attribute.
      values: for each value of the cue the stereotypical value of the target.
    """

    cue: int
    target: int
    values: tuple[int, ...]


class Wording(NamedTuple):
    """A sample in the words of the file that it is from.

    Attributes:
      story: what it states.
      people: of whom it speaks, facts first, then questions.
      questions: in the order of its queries.
    """

    story: str
    people: tuple[str, ...]
    questions: tuple[str, ...]


class Words(NamedTuple):
    """What a file calls things.

    Attributes:
      attributes: the name of each; "" where there is none of that number.
      samples: by `fingerprint`.
    """

    attributes: tuple[str, ...]
    samples: Mapping[bytes, Wording]


class Family(NamedTuple):
    """A family of tasks.

    Attributes:
      name: as in results.
      arity: how many values each base attribute has, 3 to VALUES; three at least, because a
        question must be able to deny with a value that the exposure didn't use for contrast.
      readable: the base attributes that rules may read, with VALUES values each, 15 at least; in a
        family with space a ring in which neighbours touch. None where a family has no rules.
      stereotypes: some with base targets and some with derived ones, no cue among `readable`. A
        base attribute is the target of one at most, and of none that comes after one that it cues.
        Each protected attribute is the cue of one.
      protected: the attributes in one of which two samples of a pair differ; none is `readable`.
      canvas: (rows, columns): the first rows * columns attributes lie in space, row by row; (0, 0)
        where a family has no space.
      clause: for each attribute a pattern with {e} and, unless derived, {v}; a derived attribute
        has two, joined by '|': it doesn't hold, it holds.
      words: for each base attribute the words of its values.
      names: what entities are called, one name for each.
      sizes: how much room it needs.
      trains: whether it has samples that base states can be made from.
      own: the words of the file that the samples are from; None: words are made of clauses.
      is_shown: its statements are shown in frames, not told, see `pictures`.
    """

    name: str
    arity: tuple[int, ...]
    readable: tuple[int, ...]
    stereotypes: tuple[Stereotype, ...]
    protected: tuple[int, ...]
    canvas: tuple[int, int]
    clause: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    names: tuple[str, ...]
    sizes: Sizes = Sizes()
    trains: bool = True
    own: Words | None = None
    is_shown: bool = False

    @property
    def is_spatial(self) -> bool:
        """Whether its attributes lie in space."""
        return self.canvas != (0, 0)

    @property
    def has_rules(self) -> bool:
        """Whether it knows what follows from what is stated, and so can draw samples; a user's
        file of samples doesn't.
        """
        return bool(self.readable)

    def rules(self, key: jax.Array) -> Rules:
        """The rules that a key gives: what all samples of a generator seed go by.

        Raises:
          ValueError: it has none.
        """
        if not self.has_rules:
            raise ValueError(f"{self.name} has no rules to draw, nor samples")
        ring = np.full(BASE, -1, np.int32)
        ring[: len(self.readable)] = self.readable
        drawn = rules.draw(key, ring, np.bool_(self.is_spatial))
        if not self.is_shown:
            return drawn
        return drawn._replace(shapes=pictures.prototypes(jax.random.fold_in(key, 1)))

    def judge(self, rules_: Rules, values: jax.Array, stated: jax.Array) -> jax.Array:
        """The right answer to 'is attribute a value v?' given the stated facts alone:
        i32[ATTRIBUTES, VALUES] for i32[BASE] values and bool[BASE] stated.
        """
        return rules.judge(rules_, values, stated)


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


def say(family: Family, statement: Statement) -> str:
    """A statement or question in words; takes scalars (of NumPy or Python)."""
    template, entity, attribute, value = (int(part) for part in statement[:4])
    if attribute >= len(family.words):
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


def fingerprint(sample: Sample) -> bytes:
    """What a sample states and asks, whatever numbers its entities have; of NumPy arrays."""
    told, asked = sample.exposure, sample.query
    entities = np.concatenate([told.entity[sample.shown], asked.entity[sample.asked]]).tolist()
    rank = {entity: i for i, entity in enumerate(dict.fromkeys(entities))}
    parts = (told.attribute, told.value, sample.label, sample.shown, asked.attribute, asked.value)
    numbers: list[Any] = [*map(np.ravel, parts), [rank[entity] for entity in entities]]
    return np.concatenate(numbers, dtype=np.int32).tobytes()


def worded(family: Family, sample: Sample) -> Wording | None:
    """The sample in its file's own words; None for one that was drawn."""
    if family.own is None:
        return None
    return family.own.samples.get(fingerprint(jax.tree.map(np.asarray, sample)))


def question(family: Family, sample: Sample, number: int) -> str:
    """A query of a sample in words."""
    if (own := worded(family, sample)) is not None:
        return own.questions[number]
    return say(family, Statement(*(np.asarray(part)[number] for part in sample.query[:4])))


def story(family: Family, sample: Sample) -> str:
    """The facts of one sample as a short text; what isn't so is left unsaid."""
    if (own := worded(family, sample)) is not None:
        return own.story
    exposure = jax.tree.map(np.asarray, sample.exposure)
    told = np.flatnonzero((np.asarray(sample.label) == YES) & np.asarray(sample.shown))
    return " ".join(say(family, Statement(*(part[i] for part in exposure[:4]))) for i in told)
