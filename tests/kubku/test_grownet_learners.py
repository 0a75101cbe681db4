"""GrowNet asked questions: what each learner knows, what it doesn't, and that asking is a read."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import protocol
from kubku.grownet import memory
from kubku.grownet.history import growth_history
from kubku.grownet.learner import grownet
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import (
    BASE,
    ENTITIES,
    EXPOSURES,
    FACTS,
    QUERIES,
    Kind,
    Sample,
    Statement,
    decide,
)

NO, UNKNOWN, YES = (int(answer) for answer in (Answer.NO, Answer.UNKNOWN, Answer.YES))
RULE = BASE  # the first derived attribute; in `world` it holds if attributes 0 and 1 are both 0


def world(seed: int, n: int, entity: int = 3) -> Sample:
    """`n` samples of a small world of three values, built without the task families.

    Attributes 0 and 1 are stated in three of four samples each, 2 to 13 fill up. Asked are: each of
    0 and 1 with value 0, the rule affirmed and denied, a stated fact, its denial, an attribute that
    is never stated, and a stated fact of somebody else.
    """
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (n, BASE))
    values[:, :2] *= rng.random((n, 2)) < 0.5
    shown = rng.random((n, 2)) < 0.75
    facts = np.array([[*np.flatnonzero(row), *range(2, 2 + FACTS - row.sum())] for row in shown])
    stated = np.take_along_axis(values, facts, 1)
    attribute, value = np.hstack([facts, facts]), np.hstack([stated, (stated + 1) % 3])
    zero = np.where(shown, np.where(values[:, :2] == 0, YES, NO), UNKNOWN)
    rule = zero.min(1)
    absent = np.full(n, BASE - 1)
    last, held = facts[:, -1], stated[:, -1]
    asked = [
        (0 * rule, 0, zero[:, 0], entity),
        (0 * rule + 1, 0, zero[:, 1], entity),
        (0 * rule + RULE, 1, rule, entity),
        (0 * rule + RULE, 0, 2 - rule, entity),
        (last, held, 0 * rule + YES, entity),
        (last, (held + 2) % 3, 0 * rule + NO, entity),
        (absent, 0, 0 * rule + UNKNOWN, entity),
        (last, held, 0 * rule + UNKNOWN, entity + 1),
    ]
    width = QUERIES - len(asked)

    def column(i):
        entries = [np.broadcast_to(query[i], n) for query in asked] + [np.zeros(n, int)] * width
        return jnp.asarray(np.stack(entries, 1), jnp.int32)

    def full(fill):
        return jnp.full((n, EXPOSURES), fill, jnp.int32)

    labels = np.broadcast_to(np.repeat([YES, NO], FACTS), (n, EXPOSURES))
    kind = np.repeat([[Kind.LITERAL] * 2 + [Kind.ENTAILED] * (QUERIES - 2)], n, 0)
    return Sample(
        exposure=Statement(full(0), full(entity), jnp.int32(attribute), jnp.int32(value)),
        label=jnp.int32(labels),
        shown=jnp.ones((n, EXPOSURES), bool),
        query=Statement(jnp.full((n, QUERIES), 2), column(3), column(0), column(1)),
        asked=jnp.broadcast_to(jnp.arange(QUERIES) < len(asked), (n, QUERIES)),
        kind=jnp.int32(kind),
        stratum=jnp.full((n, QUERIES), -1),
        gold=column(2),
        harmful=jnp.full((n, QUERIES), -1),
        pair=jnp.full(n, -1),
        latents=jnp.int32(values),
    )


def answers(learner, state, samples, threshold=0.5):
    exposed = protocol.reset_to_base(learner, state, samples)
    return np.asarray(decide(exposed.after, threshold))[samples.asked]


def gold(samples):
    return np.asarray(samples.gold)[samples.asked]


# One object each, and one number of samples, so that each is compiled once.
N = 64
LEARNERS = {
    "grownet_lookup": grownet_lookup(entities=4),
    "grownet": grownet(False, entities=4),
}


@pytest.fixture(scope="module")
def grown():
    learner = LEARNERS["grownet"]
    return learner.bases["grown"](
        learner.init(jax.random.key(0)), world(1, 4 * N), jax.random.key(7)
    )


def test_lookup_knows_what_was_stated_and_nothing_else():
    learner, samples = LEARNERS["grownet_lookup"], world(0, N)
    said = answers(learner, learner.init(jax.random.key(0)), samples).reshape(N, -1)
    right = gold(samples).reshape(N, -1)
    rule = np.isin(np.arange(8), (2, 3))
    np.testing.assert_array_equal(said[:, ~rule], right[:, ~rule])
    assert np.all(said[:, rule] == UNKNOWN)


def test_a_memory_keeps_entities_apart_and_forgets_nobody_while_there_is_room():
    held, remember, recall = memory.empty(3), jax.jit(memory.remember), jax.jit(memory.recall)
    for entity in (50, 51, 95, 7):
        fact = Statement(*(jnp.int32(x) for x in (0, entity, entity % 20, entity % 8)))
        held = remember(held, fact, True)
    for entity in (50, 51, 95):
        frame = np.asarray(recall(held, jnp.int32(entity)))
        assert np.argwhere(frame).tolist() == [[entity % 20, entity % 8]]
    # The fourth found no room; the first three never met 52.
    for entity in (7, 52):
        assert not recall(held, jnp.int32(entity)).any()


def test_a_memory_has_room_for_every_entity_there_is():
    held = memory.empty(ENTITIES)
    told = Statement(
        *(jnp.asarray(x) for x in (np.zeros(ENTITIES, int), np.arange(ENTITIES)[::-1])),
        *(jnp.arange(ENTITIES)[::-1] % n for n in (20, 8)),
    )
    remember = jax.jit(lambda held: jax.lax.scan(_remembering, held, told)[0])
    frames = np.asarray(jax.vmap(memory.recall, (None, 0))(remember(held), jnp.arange(ENTITIES)))
    for entity, frame in enumerate(frames):
        assert np.argwhere(frame).tolist() == [[entity % 20, entity % 8]]


def _remembering(held, fact):
    return memory.remember(held, fact, True), None


def test_every_attribute_and_value_has_a_place_of_its_own():
    places = {
        tuple(np.asarray(memory._place(Statement(0, 0, jnp.int32(a), jnp.int32(v)))).tolist())
        for a in range(28)
        for v in range(8)
    }
    assert len(places) == 28 * 8 and max(max(place) for place in places) < 16


def test_a_rule_that_no_sample_states_is_grown_and_the_rest_is_doubt(grown):
    """The rule comes from readers: before they grew, every place was novel, stated or not."""
    learner, samples = LEARNERS["grownet"], world(2, N, entity=60)
    state = protocol.with_trial(grown, {"focus": 64.0})
    assert np.mean(answers(learner, state, samples, 0.3) == gold(samples)) > 0.98
    said = answers(learner, learner.init(jax.random.key(0)), samples)
    assert np.all(said == UNKNOWN)


def test_what_is_withheld_is_not_grown_on(grown):
    """Nobody is told the answers to bias traps, nor to traps about odd attributes."""
    samples, learner = world(1, 4 * N), LEARNERS["grownet"]
    blank = learner.init(jax.random.key(0))
    for kind, odd in ((Kind.BIAS, False), (Kind.HALLUCINATION, True)):
        trapped = samples._replace(
            query=samples.query._replace(attribute=samples.query.attribute * 0 + RULE + odd),
            kind=samples.kind * 0 + int(kind),
        )
        state = learner.bases["grown"](blank, trapped, jax.random.key(7))
        assert state.readers.told.sum() == 0 and not state.readers.hits.any()
    assert grown.readers.told.sum() > 0


def test_growing_in_instalments_is_growing_at_once(grown):
    learner = LEARNERS["grownet"]
    fresh = learner.init(jax.random.key(0))
    history, later = growth_history(learner, fresh, world(1, 4 * N), jax.random.key(7), parts=4)
    chex.assert_trees_all_close(later, grown, rtol=1e-6)
    first = [2**power for power in range(20) if 2**power < N]
    assert history.samples.tolist() == [0, *first, N, 2 * N, 3 * N, 4 * N]
    assert not history.slots[0].any() and history.slots[1].any()
    assert np.all(np.diff(history.slots, axis=0) >= 0) and history.slots[-1].sum() > 0
    assert np.all(np.diff(history.neurons, axis=0) >= 0)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_is_what_the_protocol_expects(name):
    """No passes change nothing, scores are shares, and learning doesn't look at the halo."""
    learner, samples = LEARNERS[name], world(3, N)
    state = learner.init(jax.random.key(0))
    if "grown" in learner.bases:
        state = learner.bases["grown"](state, world(1, 4 * N), jax.random.key(7))
    none = protocol.reset_to_base(learner, protocol.with_trial(state, {"steps": 0}), samples)
    np.testing.assert_array_equal(none.before, none.after)
    exposed = protocol.reset_to_base(learner, state, samples)
    for scores in exposed:
        np.testing.assert_allclose(scores.sum(-1), 1.0, rtol=1e-5)
        assert np.all(scores >= 0)
    assert np.any(exposed.before != exposed.after)
    assert protocol.audit(learner, state, samples) == 0.0
