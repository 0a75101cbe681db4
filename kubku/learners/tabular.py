"""Controls with a dictionary of facts: alone, with counts of pairs, with a network that reads it.

They ask what a grown network adds. `pair_counts` keeps what `grownet`'s readers could
keep at most, in plain tables: no threshold, no firing, no growth. `dictionary_mlp` has the same
memory, and a small network trained by gradients in the readers' place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from evidence.answers import Answer
from kubku.grownet.ensemble import in_order, opinion
from kubku.halo import (
    BASE,
    DERIVED,
    ENTITIES,
    VALUES,
    Learner,
    Sample,
    Samples,
    Statement,
    withheld,
)

UNSTATED = 0
_QUESTIONS = 2 * DERIVED
_PAIRS = np.stack(np.triu_indices(BASE), axis=-1)
"""Two attributes, or one beside itself. i32[P, 2]."""


class Facts(NamedTuple):
    """What was stated of everybody.

    Attributes:
      known: 1 + value of each attribute, `UNSTATED` before it was stated; what was said last
        counts. i32[ENTITIES, BASE].
    """

    known: jax.Array


def nothing() -> Facts:
    """No facts."""
    return Facts(jnp.full((ENTITIES, BASE), UNSTATED))


def told(facts: Facts, sample: Sample) -> Facts:
    """With the facts that a sample states."""
    said = sample.exposure
    is_fact = sample.shown & (sample.label == Answer.YES)
    entity = jnp.where(is_fact, said.entity, ENTITIES)  # out of bounds: dropped
    return Facts(facts.known.at[entity, said.attribute].set(1 + said.value, mode="drop"))


def literal(facts: Facts, query: Statement) -> jax.Array:
    """Scores f32[3]: YES where the value was stated, NO where another was, else UNKNOWN."""
    stated = query.attribute < BASE
    known = facts.known[query.entity, jnp.minimum(query.attribute, BASE - 1)]
    settled = jnp.where(known == 1 + query.value, int(Answer.YES), int(Answer.NO))
    answer = jnp.where(stated & (known != UNSTATED), settled, int(Answer.UNKNOWN))
    return jax.nn.one_hot(answer, 3)


def dictionary() -> Learner:
    """Literals right, UNKNOWN to everything else: KU 1, BKU 0."""
    return Learner(lambda key: nothing(), told, literal, {"none": None}, chunk=16)


class Counts(NamedTuple):
    """`pair_counts`' state; M questions, P pairs of attributes.

    Attributes:
      facts: stated; all that learning a sample changes.
      votes: answers that were right, by question, pair and the two values that were known.
        f32[M, P, 1 + VALUES, 1 + VALUES, 3].
      right: times that a pair's counts foresaw the answer before it was told. f32[M, P].
      told: answers told. f32[M].
      focus: how much more a pair is trusted that was right more often. f32[].
    """

    facts: Facts
    votes: jax.Array
    right: jax.Array
    told: jax.Array
    focus: jax.Array


def pair_counts() -> Learner:
    """Facts by dictionary, the rest by counts for each question, pair of attributes and values."""

    def init(key: jax.Array) -> Counts:
        sizes = (_QUESTIONS, len(_PAIRS))
        votes = jnp.zeros((*sizes, 1 + VALUES, 1 + VALUES, 3))
        zeros = jnp.zeros(sizes), jnp.zeros(_QUESTIONS), jnp.float32(32)
        return Counts(nothing(), votes, *zeros)

    def learn(state: Counts, sample: Sample) -> Counts:
        return state._replace(facts=told(state.facts, sample))

    def answer(state: Counts, query: Statement) -> jax.Array:
        question = jnp.maximum(_question(query), 0)
        values = state.facts.known[query.entity]
        votes = _seen(state.votes, question, values)
        record = state.right[question] / jnp.maximum(state.told[question], 1)
        weight = jnp.exp(state.focus * (record - record.max()))
        judged = opinion(votes, votes.sum(-1) > 0, weight)
        asks = (_question(query) >= 0) & (values != UNSTATED).any()
        return jnp.where(asks, judged, literal(state.facts, query))

    def count(state: Counts, samples: Samples, key: jax.Array) -> Counts:
        def tell(state: Counts, item: tuple[Sample, jax.Array]) -> tuple[Counts, None]:
            sample, allowed = item
            known = told(nothing(), sample).known[sample.exposure.entity[0]]
            for place in range(sample.gold.shape[0]):
                query = jax.tree.map(lambda x, place=place: x[place], sample.query)
                told_of = allowed[place] & (_question(query) >= 0)
                state = _count(state, _question(query), known, sample.gold[place], told_of)
            return state, None

        samples = in_order(samples, key)
        return jax.lax.scan(tell, state, (samples, samples.asked & ~withheld(samples)))[0]

    trials = tuple({"focus": float(4**power)} for power in range(8))
    bases = {"empty": None, "counted": jax.jit(count)}
    return Learner(init, learn, answer, bases, trials, chunk=8)


def _question(query: Statement) -> jax.Array:
    """Which derived attribute and value is asked about; -1 for what can be stated. i32[]."""
    derived = (query.attribute >= BASE) & (query.value < 2)
    return jnp.where(derived, 2 * (query.attribute - BASE) + query.value, -1)


def _seen(votes: jax.Array, question: jax.Array, values: jax.Array) -> jax.Array:
    """Votes of each pair for what is known of somebody. f32[P, 3]."""
    one, two = values[_PAIRS.T]
    return votes[question, np.arange(len(_PAIRS)), one, two]


def _count(
    state: Counts, question: jax.Array, values: jax.Array, gold: jax.Array, told_of: jax.Array
) -> Counts:
    """Each pair foresees an answer, then it is counted; nothing where it is not told."""
    seen = _seen(state.votes, question, values)
    foreseen = jnp.where(seen.sum(-1) > 0, jnp.argmax(seen, -1), int(Answer.UNKNOWN))
    one, two = values[_PAIRS.T]
    at = jnp.where(told_of, question, _QUESTIONS)  # out of bounds: dropped
    each = np.arange(len(_PAIRS))
    return state._replace(
        votes=state.votes.at[at, each, one, two, gold].add(1.0, mode="drop"),
        right=state.right.at[at].add(foreseen == gold, mode="drop"),
        told=state.told.at[at].add(1.0, mode="drop"),
    )


class Read(NamedTuple):
    """`dictionary_mlp`'s state.

    Attributes:
      facts: stated; all that learning a sample changes.
      params: of the network.
    """

    facts: Facts
    params: Any


class _Reader(nn.Module):
    """From what is known of somebody and the question to logits of the three answers."""

    width: int = 128

    @nn.compact
    def __call__(self, values: jax.Array, question: jax.Array) -> jax.Array:
        known = jax.nn.one_hot(values, 1 + VALUES).reshape(-1)
        x = jnp.concatenate([known, jax.nn.one_hot(question, _QUESTIONS)])
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(3)(x)


def dictionary_reader() -> Learner:
    """A dictionary of facts, and a network that judges what can't be stated from what it holds.

    Its base states are those of `base_states.of`: it has no part that a sample changes but the
    dictionary.
    """
    network = _Reader()

    def init(key: jax.Array) -> Read:
        blank = jnp.zeros(BASE, jnp.int32), jnp.int32(0)
        return Read(nothing(), network.init(key, *blank))

    def learn(state: Read, sample: Sample) -> Read:
        return state._replace(facts=told(state.facts, sample))

    def answer(state: Read, query: Statement) -> jax.Array:
        question = _question(query)
        values = state.facts.known[query.entity]
        logits = network.apply(state.params, values, jnp.maximum(question, 0))
        judged = nn.softmax(jnp.asarray(logits))
        asks = (question >= 0) & (values != UNSTATED).any()
        return jnp.where(asks, judged, literal(state.facts, query))

    return Learner(init, learn, answer, {}, chunk=16)
