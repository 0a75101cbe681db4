"""A memory of what samples state, and a network that reads what it recalls.

Dictionary, fast weights, edited layer, associative memory and hologram are compared on even terms:
each recalls, for somebody, a share for every value of every attribute and one for knowing nothing.
Questions about what can be stated are answered by those shares alone. Others are judged by a small
trained network, the same for all, that sees the shares and the question. A memory abstains by the
strength of its own recall: nothing here asks what was stated.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from evidence.answers import Answer
from kubku.base_states import UNTRAINED, Through
from kubku.halo import Learner, Sample, Sizes, State, Statement, withheld

Recall = Callable[[State, jax.Array], jax.Array]
"""(state, entity) -> f32[base, 1 + values]: shares that sum to 1, the first for knowing nothing."""

GAIN = 100.0
"""How sharply a recall is settled: a strength a tenth above doubt counts e^10 times as much. What
was stated, a quarter above doubt, is then as sure as in a dictionary; scores that end a hundredth
short of 1 would have to share thresholds with whatever else is nearly sure."""

DOUBT = np.eye(3, dtype=np.float32)[Answer.UNKNOWN]


class Reader(nn.Module):
    """From what is recalled of somebody and the question to logits of the three answers."""

    width: int = 128

    @nn.compact
    def __call__(self, shares: jax.Array, question: jax.Array) -> jax.Array:
        x = jnp.concatenate([shares.reshape(-1), question])
        for _ in range(2):
            x = nn.relu(nn.Dense(self.width)(x))
        return nn.Dense(3)(x)


class Recalled(NamedTuple):
    """A question, and what is recalled of whom it is about, f32[base, 1 + values]."""

    asked: Statement
    shares: jax.Array


@dataclasses.dataclass(frozen=True)
class Judging:
    """How a query is answered: (state, query) -> scores f32[3].

    Attributes:
      recall: reads the memory.
      sizes: of the family.
    """

    recall: Recall
    sizes: Sizes

    def __call__(self, state: State, query: Statement) -> jax.Array:
        return self.judged(state, self.recalled(state, query))

    def recalled(self, state: State, query: Statement) -> Recalled:
        """What no trained weight has a part in."""
        return Recalled(query, self.recall(state, query.entity))

    def judged(self, state: State, recalled: Recalled) -> jax.Array:
        """Scores by what was recalled: of what can be stated at once, else by the network."""
        query, shares = recalled
        asked = question(self.sizes, query)
        coded = jax.nn.one_hot(asked, 2 * self.sizes.derived)
        logits: Any = Reader().apply(state.params, shares, coded)
        known = 1 - shares[:, 0].min()  # of somebody of whom nothing is recalled nothing follows
        judged = known * nn.softmax(logits) + (1 - known) * DOUBT
        return jnp.where(asked >= 0, judged, literal(shares, self.sizes, query))


def facts(sample: Sample) -> jax.Array:
    """Which of a sample's items are facts, bool[EXPOSURES]: contrasts add nothing to what
    single-valued attributes imply.
    """
    return sample.shown & (sample.label == Answer.YES)


def settled(strengths: jax.Array, doubt: jax.Array | float) -> jax.Array:
    """Shares f32[..., 1 + values] of strengths f32[..., values]: a softmax in which knowing nothing
    is as strong as `doubt`.
    """
    nothing = jnp.full((*strengths.shape[:-1], 1), doubt)
    return nn.softmax(GAIN * jnp.concatenate([nothing, strengths], -1))


def question(sizes: Sizes, query: Statement) -> jax.Array:
    """Which derived attribute and value is asked about; -1 for what can be stated. i32[]."""
    derived = (query.attribute >= sizes.base) & (query.value < 2)
    return jnp.where(derived, 2 * (query.attribute - sizes.base) + query.value, -1)


def literal(shares: jax.Array, sizes: Sizes, query: Statement) -> jax.Array:
    """Scores f32[3]: YES as far as the value is recalled, NO as far as another is."""
    nothing, *_ = row = shares[jnp.minimum(query.attribute, sizes.base - 1)]
    yes = row[1 + query.value]
    scores = jnp.stack([jnp.maximum(1 - nothing - yes, 0), nothing, yes])
    return jnp.where(query.attribute < sizes.base, scores, DOUBT)


def recalling(
    init: Callable[[], State],
    learn: Callable[[State, Sample], State],
    recall: Recall,
    sizes: Sizes,
    trials: tuple[dict[str, float], ...] = ({},),
    chunk: int = 16,
) -> Learner:
    """A learner that recalls, and reads what it recalls.

    Its base states are those of `base_states.of`: samples change the memory, training the reader.

    Args:
      init: an empty memory, a NamedTuple with fields `params` and `trained`, which are set here.
      learn: writes a sample into it.
      recall: reads it.
      sizes: of the family.
      trials, chunk: see `Learner`.
    """

    def start(key: jax.Array) -> State:
        shares, coded = jnp.zeros((sizes.base, 1 + sizes.values)), jnp.zeros(2 * sizes.derived)
        return init()._replace(params=Reader().init(key, shares, coded), trained=UNTRAINED)

    return Learner(start, learn, Judging(recall, sizes), {}, trials, chunk)


def through(learner: Learner) -> Through:
    """What the network of one that recalls is trained through: what is recalled when a sample is
    asked about is found once, before training.
    """
    judging = learner.answer
    assert isinstance(judging, Judging), "only one that recalls has a memory to read once"

    def read(state: State, sample: Sample) -> Sample:
        learnt = learner.learn(state, sample)
        recalled: Any = jax.vmap(judging.recalled, (None, 0))(learnt, sample.query)
        nothing: Any = None
        return sample._replace(exposure=nothing, query=recalled, held=withheld(sample))

    return Through(lambda state, sample: state, judging.judged, learner.chunk, read=read)
