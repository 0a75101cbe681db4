"""Controls with a dictionary of facts: alone, with counts of pairs, with a network that reads it.

They ask what a grown network adds. `pair_counts` keeps what `grownet`'s readers could
keep at most, in plain tables: no threshold, no firing, no growth. `dictionary_mlp` has the same
memory, and a small network trained by gradients in the readers' place.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from evidence.answers import Answer
from kubku.grownet.ensemble import in_order, opinion
from kubku.halo import DRAWN, Learner, Sample, Samples, Sizes, Statement, withheld
from kubku.learners import recall
from kubku.learners.recall import question, recalling

UNSTATED = 0


class Facts(NamedTuple):
    """What was stated of everybody.

    Attributes:
      known: 1 + value of each attribute, `UNSTATED` before it was stated; what was said last
        counts. i32[entities, base], by the family's sizes.
      params, trained: of the network that reads it, if one does.
    """

    known: jax.Array
    params: Any = None
    trained: Any = None


def nothing(sizes: Sizes = DRAWN) -> Facts:
    """No facts."""
    return Facts(jnp.full((sizes.entities, sizes.base), UNSTATED))


def told(facts: Facts, sample: Sample) -> Facts:
    """With the facts that a sample states, of whomever it states them."""
    said = sample.exposure
    entity = jnp.where(
        recall.facts(sample), said.entity, len(facts.known)
    )  # out of bounds: dropped
    return facts._replace(
        known=facts.known.at[entity, said.attribute].set(1 + said.value, mode="drop")
    )


def literal(facts: Facts, sizes: Sizes, query: Statement) -> jax.Array:
    """Scores f32[3]: YES where the value was stated, NO where another was, else UNKNOWN."""
    known = jax.nn.one_hot(facts.known[query.entity], 1 + sizes.values)
    return recall.literal(known, sizes, query)


def dictionary(sizes: Sizes = DRAWN) -> Learner:
    """Literals right, UNKNOWN to everything else: KU 1, BKU 0."""

    def answer(facts: Facts, query: Statement) -> jax.Array:
        return literal(facts, sizes, query)

    return Learner(lambda key: nothing(sizes), told, answer, {"none": None}, chunk=16)


def dictionary_reader(sizes: Sizes = DRAWN) -> Learner:
    """A dictionary of facts, and a network that judges what can't be stated from what it holds."""

    def shares(facts: Facts, entity: jax.Array) -> jax.Array:
        return jax.nn.one_hot(facts.known[entity], 1 + sizes.values)

    return recalling(lambda: nothing(sizes), told, shares, sizes)


class Counts(NamedTuple):
    """`pair_counts`' state; M questions, P pairs of attributes.

    Attributes:
      facts: stated; all that learning a sample changes.
      votes: answers that were right, by question, pair and the two values that were known.
        f32[M, P, 1 + values, 1 + values, 3].
      right: times that a pair's counts foresaw the answer before it was told. f32[M, P].
      told: answers told. f32[M].
      focus: how much more a pair is trusted that was right more often. f32[].
    """

    facts: Facts
    votes: jax.Array
    right: jax.Array
    told: jax.Array
    focus: jax.Array


def pair_counts(sizes: Sizes = DRAWN) -> Learner:
    """Facts by dictionary, the rest by counts for each question, pair of attributes and values."""
    # Two attributes, or one beside itself. i32[P, 2].
    pairs = np.stack(np.triu_indices(sizes.base), axis=-1)

    def init(key: jax.Array) -> Counts:
        shape = 2 * sizes.derived, len(pairs)
        votes = jnp.zeros((*shape, 1 + sizes.values, 1 + sizes.values, 3))
        zeros = jnp.zeros(shape), jnp.zeros(shape[0]), jnp.float32(32)
        return Counts(nothing(sizes), votes, *zeros)

    def learn(state: Counts, sample: Sample) -> Counts:
        return state._replace(facts=told(state.facts, sample))

    def answer(state: Counts, query: Statement) -> jax.Array:
        asked = question(sizes, query)
        values = state.facts.known[query.entity]
        votes = _seen(state.votes, pairs, jnp.maximum(asked, 0), values)
        record = state.right[asked] / jnp.maximum(state.told[asked], 1)
        weight = jnp.exp(state.focus * (record - record.max()))
        judged = opinion(votes, votes.sum(-1) > 0, weight)
        judges = (asked >= 0) & (values != UNSTATED).any()
        return jnp.where(judges, judged, literal(state.facts, sizes, query))

    def count(state: Counts, samples: Samples, key: jax.Array) -> Counts:
        def tell(state: Counts, item: tuple[Sample, jax.Array]) -> tuple[Counts, None]:
            sample, allowed = item
            known = told(nothing(sizes), sample).known[sample.query.entity]
            asked = jax.vmap(partial(question, sizes))(sample.query)
            # Of somebody of whom nothing was said nothing is asked of the counts.
            told_of = allowed & (asked >= 0) & (known != UNSTATED).any(-1)
            order = jnp.argsort(~told_of, stable=True)  # those to be counted first

            def one(place: jax.Array, state: Counts) -> Counts:
                at = order[place]
                return _count(state, pairs, asked[at], known[at], sample.gold[at])

            return jax.lax.fori_loop(0, told_of.sum(), one, state), None

        samples = in_order(samples, key)
        return jax.lax.scan(tell, state, (samples, samples.asked & ~withheld(samples)))[0]

    trials = tuple({"focus": float(4**power)} for power in range(8))
    bases = {"empty": None, "counted": jax.jit(count)}
    return Learner(init, learn, answer, bases, trials, chunk=8)


def _seen(votes: jax.Array, pairs: np.ndarray, asked: jax.Array, values: jax.Array) -> jax.Array:
    """Votes of each pair for what is known of somebody. f32[P, 3]."""
    one, two = values[pairs.T]
    return votes[asked, np.arange(len(pairs)), one, two]


def _count(
    state: Counts, pairs: np.ndarray, asked: jax.Array, values: jax.Array, gold: jax.Array
) -> Counts:
    """Each pair foresees an answer, then it is counted."""
    seen = _seen(state.votes, pairs, asked, values)
    foreseen = jnp.where(seen.sum(-1) > 0, jnp.argmax(seen, -1), int(Answer.UNKNOWN))
    one, two = values[pairs.T]
    each = np.arange(len(pairs))
    return state._replace(
        votes=state.votes.at[asked, each, one, two, gold].add(1.0),
        right=state.right.at[asked].add(foreseen == gold),
        told=state.told.at[asked].add(1.0),
    )
