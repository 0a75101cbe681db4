"""`grownet_vote`: label counts in the slots of an ensemble of random projections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from kubku.base_states import withheld
from kubku.grownet import growth
from kubku.grownet.ensemble import in_order, opinion, passes
from kubku.grownet.growth import Layer, LayerRule
from kubku.grownet.slots import SlotRule
from kubku.halo import (
    ATTRIBUTES,
    ENTITY_CODE,
    FEATURES,
    TEMPLATES,
    VALUES,
    Learner,
    Sample,
    Samples,
    Statement,
)

# Which weights of a projection belong to what in `halo.features`. A template's are zero: questions
# are worded in templates that no statement uses.
_OF_TEMPLATE = slice(0, TEMPLATES)
_OF_ENTITY = slice(TEMPLATES, TEMPLATES + ENTITY_CODE.shape[1])
_OF_ATTRIBUTE = slice(_OF_ENTITY.stop, _OF_ENTITY.stop + ATTRIBUTES)
_OF_VALUE = slice(_OF_ATTRIBUTE.stop, FEATURES)


@dataclass(frozen=True)
class VoteRule:
    """The sizes of `grownet_vote`.

    Attributes:
      neurons: room for neurons (N).
      initial: neurons at the start; the others grow.
      slots: room for slots in each (S).
      bin_width: percent of a neuron's first drive that a bin spans.
      density: share of the attributes that reach a neuron.
    """

    neurons: int = 64
    initial: int = 48
    slots: int = 16
    bin_width: float = 3.0
    density: float = 0.25

    @property
    def layer(self) -> LayerRule:
        """How the ensemble grows."""
        slots = SlotRule(self.slots, (self.bin_width,))
        return LayerRule(slots, capacity=self.neurons, initial=self.initial)


class VoteState(NamedTuple):
    """`grownet_vote`'s state.

    Attributes:
      projection: f32[N, FEATURES], what each neuron sums of a statement; an attribute whose weight
        is 0 doesn't reach the neuron at all.
      layer: N neurons of S slots.
      votes: f32[N, S, 3], labels heard in each slot.
      gain: f32[], votes that an exposure casts; what a base state was grown on cast 1 each.
      steps: i32[], passes over a sample.
    """

    projection: Array
    layer: Layer
    votes: Array
    gain: Array
    steps: Array


def grownet_vote(rule: VoteRule = VoteRule()) -> Learner:
    """Label counts in the slots of an ensemble that sees statements through random projections.

    Neuron n is driven by 1 + p_n . f: percent bins need an anchor away from zero, and the sum over
    features is ours, since the reference has no summation. It can affirm and deny what it was
    shown; a value that it was never shown is novel to it, even of an attribute that it knows.
    """
    trials = tuple({"gain": float(8**power)} for power in range(8))
    return Learner(
        init=partial(init, rule),
        learn=partial(learn, rule),
        answer=partial(answer, rule),
        bases={"empty": None, "grown": jax.jit(partial(grow, rule))},
        trials=trials,
        chunk=64,
    )


def init(rule: VoteRule, key: Array) -> VoteState:
    """An ensemble that has heard nothing."""
    weights, reach = jax.random.split(key)
    projection = 0.1 * jax.random.normal(weights, (rule.neurons, FEATURES))
    projection = projection.at[:, _OF_TEMPLATE].set(0.0)
    reaches = jax.random.bernoulli(reach, rule.density, (rule.neurons, ATTRIBUTES))
    projection = projection.at[:, _OF_ATTRIBUTE].multiply(reaches)
    votes = jnp.zeros((rule.neurons, rule.slots, 3))
    return VoteState(projection, growth.empty(rule.layer), votes, jnp.float32(1), jnp.int32(1))


def learn(rule: VoteRule, state: VoteState, sample: Sample) -> VoteState:
    """Cast a vote for each label that the sample shows."""
    votes = state.gain * sample.shown

    def once(changed: VoteState) -> VoteState:
        return _cast(rule, changed, sample.exposure, sample.label, votes)

    return passes(state.steps, once, state)


def answer(rule: VoteRule, state: VoteState, query: Statement) -> Array:
    """Scores f32[3]: the pool of the neurons that the query reaches."""
    drives, reached = _drive(state, query)
    response = growth.probe(state.layer, drives, drives[:, None], rule.layer)
    rows = jnp.arange(rule.neurons)
    votes = state.votes[rows, response.slot]
    listening = reached & (rows < state.layer.active)
    return opinion(votes, response.familiar, listening.astype(jnp.float32))


def grow(rule: VoteRule, state: VoteState, samples: Samples, key: Array | None) -> VoteState:
    """The base state `grown`: told the answers of the pretraining split."""
    samples = in_order(samples, key)
    used = samples.asked & ~withheld(samples)

    def one(state: VoteState, item: tuple[Samples, Array]) -> tuple[VoteState, None]:
        sample, votes = item
        return _cast(rule, state, sample.query, sample.gold, votes), None

    return lax.scan(one, state, (samples, used.astype(jnp.float32)))[0]


def _drive(state: VoteState, statement: Statement) -> tuple[Array, Array]:
    """What reaches each neuron, f32[..., N], and whether anything does."""
    # 1 + p . features(statement); one-hot features make the product a sum of three rows.
    weights = state.projection.T
    entity = (jnp.asarray(ENTITY_CODE) @ weights[_OF_ENTITY])[statement.entity]
    attribute = weights[_OF_ATTRIBUTE][statement.attribute]
    value = weights[_OF_VALUE][statement.attribute * VALUES + statement.value]
    return 1 + entity + attribute + value, attribute != 0


def _cast(
    rule: VoteRule, state: VoteState, statements: Statement, labels: Array, votes: Array
) -> VoteState:
    """Present statements one after the other (leaves [T]); `votes` f32[T], 0 to skip one."""
    rows = jnp.arange(rule.neurons)

    def tick(
        carry: tuple[Layer, Array], event: tuple[Array, ...]
    ) -> tuple[tuple[Layer, Array], None]:
        layer, counts = carry
        drives, reached, label, vote = event
        driven = reached & (vote > 0)
        layer, response = growth.present(layer, drives, drives[:, None], rule.layer, driven=driven)
        counts = counts.at[rows, response.slot, label].add(vote * response.landed)
        return (growth.end_tick(layer), counts), None

    events = (*_drive(state, statements), labels, votes)
    (layer, counts), _ = lax.scan(tick, (state.layer, state.votes), events)
    return state._replace(layer=layer, votes=counts)
