"""Learners whose scores theory tells: landmarks in every table, and an upper bound."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from evidence.answers import Answer
from kubku.halo import (
    BASE,
    DRAWN,
    VALUES,
    Learner,
    Sample,
    Samples,
    Sizes,
    State,
    Statement,
)
from kubku.tasks.family import UNKNOWN, YES, Family, Rules

BASES = {"none": None}


def always_yes() -> Learner:
    """Gives YES to everything."""
    return _constant(Answer.YES)


def always_no() -> Learner:
    """Gives NO to everything."""
    return _constant(Answer.NO)


def always_unknown() -> Learner:
    """Gives UNKNOWN to everything."""
    return _constant(Answer.UNKNOWN)


def _constant(answer: Answer) -> Learner:

    def say(state: State, query: Statement) -> jax.Array:
        return jax.nn.one_hot(int(answer), 3)

    return Learner(lambda key: (), lambda state, sample: state, say, BASES, exposure="none")


def random_answers() -> Learner:
    """Gives one of the three answers at random, the same one when asked again."""

    def learn(key: jax.Array, sample: Sample) -> jax.Array:
        told = sample.exposure.attribute * VALUES + sample.exposure.value
        return jax.random.fold_in(key, (told * jnp.arange(1, told.shape[0] + 1)).sum())

    def answer(key: jax.Array, query: Statement) -> jax.Array:
        for part in query[:4]:
            key = jax.random.fold_in(key, part)
        return jax.nn.one_hot(jax.random.randint(key, (), 0, 3), 3)

    return Learner(lambda key: key, learn, answer, BASES, exposure="none")


class Ledger(NamedTuple):
    """What was said about one entity, and what follows from it.

    Attributes:
      rules: those that hold. A study gives each replicate its own.
      entity: i32[], -1 before anything was said.
      values: i32[BASE], what was said; -1 where nothing was.
    """

    rules: Rules
    entity: jax.Array
    values: jax.Array


def generator_oracle(family: Family) -> Learner:
    """Knows the rules, writes down what is said of whoever the first fact is about, and reasons
    from that; UNKNOWN about anybody else: KU 2, BKU 0.
    """

    def init(key: jax.Array) -> Ledger:
        return Ledger(family.rules(jax.random.key(0)), jnp.array(-1), jnp.full(BASE, -1))

    def learn(state: Ledger, sample: Sample) -> Ledger:
        is_fact = (sample.label == YES) & sample.shown
        is_fact &= sample.exposure.entity == sample.exposure.entity[0]
        fact = jnp.where(is_fact, sample.exposure.value, -1)
        values = jnp.full(BASE, -1).at[sample.exposure.attribute].max(fact)
        return state._replace(entity=sample.exposure.entity[0], values=values)

    def answer(state: Ledger, query: Statement) -> jax.Array:
        judged = family.judge(state.rules, jnp.maximum(state.values, 0), state.values >= 0)
        known = judged[query.attribute, query.value]
        return jax.nn.one_hot(jnp.where(query.entity == state.entity, known, UNKNOWN), 3)

    return Learner(init, learn, answer, BASES, unveiled=True)


class Neighbours(NamedTuple):
    """The items of the last sample."""

    exposure: Statement
    label: jax.Array
    shown: jax.Array


def nearest_neighbour(exposures: int) -> Learner:
    """Answers like the items that agree with the query in the most of entity, attribute, value."""

    def init(key: jax.Array) -> Neighbours:
        blank = jnp.zeros(exposures, jnp.int32)
        return Neighbours(Statement(*[blank] * 4), blank, jnp.zeros(exposures, bool))

    def learn(state: Neighbours, sample: Sample) -> Neighbours:
        return Neighbours(sample.exposure, sample.label, sample.shown)

    def answer(state: Neighbours, query: Statement) -> jax.Array:
        agrees = jax.tree.map(lambda a, b: (a == b).astype(jnp.int32), state.exposure, query)
        close = (agrees.entity + agrees.attribute + agrees.value) * state.shown
        nearest = (close == close.max()) & (close > 0)
        votes = (jax.nn.one_hot(state.label, 3) * nearest[:, None]).sum(0)
        share = close.max() / 3
        known = votes / jnp.maximum(votes.sum(), 1) * share
        return known.at[UNKNOWN].add(1 - known.sum())

    return Learner(init, learn, answer, BASES)


def forced_choice(sizes: Sizes = DRAWN) -> Learner:
    """YES or NO, whichever `question_only` saw oftener: how well a question tells them apart."""

    def answer(counts: jax.Array, query: Statement) -> jax.Array:
        given = counts[query.attribute, query.value].at[UNKNOWN].set(-1)
        return jax.nn.one_hot(jnp.argmax(given), 3)

    return question_only(sizes)._replace(answer=answer)


def question_only(sizes: Sizes = DRAWN) -> Learner:
    """Gives each question the answer that it oftenest had in the pretraining split, whatever the
    sample: how much the form of the questions gives away. It alone learns from withheld ones, too.
    """

    def fitted(counts: jax.Array, samples: Samples, key: jax.Array) -> jax.Array:
        asked = samples.query.attribute, samples.query.value, samples.gold
        return counts.at[asked].add(samples.asked)

    def answer(counts: jax.Array, query: Statement) -> jax.Array:
        given = counts[query.attribute, query.value] + jnp.finfo(jnp.float32).tiny
        return given / given.sum()

    return Learner(
        lambda key: jnp.zeros((sizes.attributes, sizes.values, 3)),
        lambda counts, sample: counts,
        answer,
        {"fitted": jax.jit(fitted)},
        exposure="none",
    )
