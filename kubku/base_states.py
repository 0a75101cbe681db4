"""Base states: what a learner knows before it is shown a sample.

`random` weights know nothing, so their scores measure guessing. `marginal` weights were trained to
answer the pretraining split's halos without seeing its samples. `meta` weights were trained through
the one-shot update: learn a sample, answer its halo, change the weights that learning started from.
Entailment from one sample can only come from rules that the base state holds.

Bias traps and half of the trap attributes are withheld from all of them: a learner told in
training that every such question is UNKNOWN would show no bias by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from pydantic import Field

from evidence.config import Settings
from kubku.halo import Kind, Learner, Sample, Samples, State

Make = Callable[[State, Samples, jax.Array], State]


def withheld(samples: Samples) -> jax.Array:
    """Queries that no base state may learn from, bool as `samples.kind`: bias traps, and
    hallucination traps about attributes with an odd number.
    """
    odd = samples.query.attribute % 2 == 1
    return (samples.kind == Kind.BIAS) | ((samples.kind == Kind.HALLUCINATION) & odd)


class Training(Settings):
    """How `marginal` and `meta` weights are trained; the same for every learner.

    Attributes:
      updates: Adam steps.
      batch: samples in each.
      rate: Adam's learning rate.
    """

    updates: int = Field(gt=0)
    batch: int = Field(gt=0)
    rate: float = Field(gt=0)


def of(learner: Learner, training: Training) -> dict[str, Make | None]:
    """The base states of a learner whose state has `params`.

    `meta` is first-order MAML (Finn et al., 2017, section 5.2) for learners that take gradient
    steps, and plain training through the exposure for those that read into a state.
    """

    def unexposed(state: State, sample: Sample) -> State:
        return state

    return {
        "random": None,
        "marginal": _trained(unexposed, learner.answer, training),
        "meta": _trained(learner.learn, learner.answer, training),
    }


def _trained(learn: Callable, answer: Callable, training: Training) -> Make:
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(training.rate))

    def loss(params: Any, state: State, samples: Samples) -> jax.Array:
        def one(sample: Sample) -> jax.Array:
            learnt = learn(state._replace(params=params), sample)
            scores = jax.vmap(answer, in_axes=(None, 0))(learnt, sample.query)
            right = jnp.take_along_axis(scores, sample.gold[:, None], -1)[:, 0]
            used = sample.asked & ~withheld(sample)
            return -(jnp.log(right + 1e-9) * used).sum() / jnp.maximum(used.sum(), 1)

        return jax.vmap(one)(samples).mean()

    @jax.jit
    def make(state: State, samples: Samples, key: jax.Array) -> State:
        n = samples.label.shape[0]

        def update(carry: tuple[Any, Any], key: jax.Array):
            params, memory = carry
            rows = jax.random.randint(key, (training.batch,), 0, n)
            drawn = jax.tree.map(lambda leaf: leaf[rows], samples)
            change, memory = optimiser.update(jax.grad(loss)(params, state, drawn), memory)
            return (optax.apply_updates(params, change), memory), None

        start = state.params, optimiser.init(state.params)
        (params, _), _ = jax.lax.scan(update, start, jax.random.split(key, training.updates))
        return state._replace(params=params)

    return make
