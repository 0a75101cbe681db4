"""GrowNet asked questions: what each learner knows, what it doesn't, and that asking is a read."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from kubku.grownet.two_layer import TwoLayerRule, grownet_two_layer, within_windows
from kubku.grownet.vote import grownet_vote

from evidence.answers import Answer
from kubku import protocol
from kubku.base_states import Training
from kubku.grownet import memory
from kubku.grownet.history import growth_history
from kubku.grownet.lookup import grownet_lookup
from kubku.halo import (
    BASE,
    DERIVED,
    ENTITIES,
    EXPOSURES,
    FACTS,
    QUERIES,
    Kind,
    Sample,
    Statement,
    decide,
)
from kubku.learners import registry
from kubku.tasks import FAMILIES

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


def made_by_name(name):
    return registry.make(name, FAMILIES["stories"], Training(updates=1, batch=1))


# One object each, and one number of samples, so that each is compiled once.
N = 64
LEARNERS = {
    "grownet_lookup": grownet_lookup(entities=4),
    "grownet_vote": grownet_vote(),
    "grownet_two_layer": grownet_two_layer(TwoLayerRule(entities=4)),
}


@pytest.fixture(scope="module")
def grown():
    learner = LEARNERS["grownet_two_layer"]
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


def test_vote_affirms_and_denies_what_it_was_shown():
    learner, samples = LEARNERS["grownet_vote"], world(0, N)
    shown = samples._replace(
        query=jax.tree.map(lambda leaf: leaf[:, 4 : 4 + QUERIES], samples.exposure),
        gold=samples.label[:, 4 : 4 + QUERIES],
        asked=jnp.ones((N, QUERIES), bool),
    )
    state = learner.init(jax.random.key(0))
    assert np.mean(answers(learner, state, shown, 0.4) == gold(shown)) > 0.9
    absent = answers(learner, state, samples, 0.5).reshape(N, -1)[:, 6:]
    assert np.mean(absent == UNKNOWN) > 0.9


def test_two_layers_hold_a_rule_that_no_sample_states(grown):
    learner, samples = LEARNERS["grownet_two_layer"], world(2, N, entity=60)
    assert np.mean(answers(learner, grown, samples, 0.3) == gold(samples)) > 0.98
    # The rule comes from the readers: without them it is all lookup, and in doubt.
    said = answers(learner, learner.init(jax.random.key(0)), samples).reshape(N, -1)
    assert np.all(said[:, 2:4] == UNKNOWN)


def test_what_is_withheld_is_not_grown_on(grown):
    """Other answers to bias traps, and to traps about odd attributes, leave the same readers."""
    samples = world(1, 4 * N)
    odd = (samples.query.attribute == RULE + 1) | (samples.query.attribute == RULE)
    for kind, attribute in ((Kind.BIAS, RULE), (Kind.HALLUCINATION, RULE + 1)):
        asked = samples.query.attribute == RULE
        query = samples.query._replace(
            attribute=jnp.where(asked, attribute, samples.query.attribute)
        )
        kinds = jnp.where(odd, int(kind), samples.kind)
        trapped = samples._replace(query=query, kind=kinds)
        learner = LEARNERS["grownet_two_layer"]
        blank = learner.init(jax.random.key(0))
        for golds in (trapped.gold, jnp.where(asked, NO, trapped.gold)):
            state = learner.bases["grown"](blank, trapped._replace(gold=golds), jax.random.key(7))
            assert state.told.sum() == 0 and state.votes.sum() == 0
    assert grown.told.sum() > 0


def test_growing_in_instalments_is_growing_at_once(grown):
    learner = LEARNERS["grownet_two_layer"]
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
    none = protocol.reset_to_base(learner, protocol.with_trial(state, {"steps": 0}), samples)
    np.testing.assert_array_equal(none.before, none.after)
    exposed = protocol.reset_to_base(learner, state, samples)
    for scores in exposed:
        np.testing.assert_allclose(scores.sum(-1), 1.0, rtol=1e-5)
        assert np.all(scores >= 0)
    assert np.any(exposed.before != exposed.after)
    assert protocol.audit(learner, state, samples) == 0.0


def test_windowed_readers_look_at_what_one_window_covers():
    """On a 4 x 4 grid 2 x 2 windows join a cell to its 8 neighbours; in a row, to the next."""
    for canvas in ((4, 4), (1, 16)):
        of_learner = grownet_two_layer(TwoLayerRule(canvas=canvas))
        touching = {
            (a, b)
            for a in range(16)
            for b in range(a + 1, 16)
            if max(abs(a // canvas[1] - b // canvas[1]), abs(a % canvas[1] - b % canvas[1])) == 1
        }
        looked_at = within_windows(canvas).tolist()
        assert sorted(looked_at) == sorted([*([a, a] for a in range(BASE)), *map(list, touching)])
        state = of_learner.init(jax.random.key(0))
        assert state.right.shape == (2 * DERIVED, BASE + {(4, 4): 42, (1, 16): 15}[canvas])


def test_windowed_readers_hold_a_rule_of_cells_that_touch():
    """`world`'s rule reads attributes 0 and 1: neighbours in a row of 16, and nowhere else if only
    the first one lies in space.
    """
    samples, right = world(2, N, entity=60), {}
    for canvas in ((1, 16), (1, 1)):
        learner = grownet_two_layer(TwoLayerRule(canvas=canvas))
        state = learner.bases["grown"](learner.init(jax.random.key(0)), world(1, 4 * N), None)
        correct = answers(learner, state, samples, 0.3) == gold(samples)
        right[canvas] = correct.reshape(N, -1)[:, 2:4].mean()
    assert right[1, 16] > 0.98 and right[1, 1] < 0.95


def test_where_doubt_comes_from():
    """Scores for UNKNOWN come from readers that find no slot, and from those told that the answer
    was UNKNOWN: without either there are none.
    """
    few, samples, doubt = world(1, 8), world(2, N, entity=60), {}
    made = {
        (True, True): made_by_name("grownet_two_layer"),
        (False, True): made_by_name("grownet_without_novelty"),
        (True, False): made_by_name("grownet_never_told_unknown"),
        (False, False): grownet_two_layer(TwoLayerRule(novelty=False, told_unknown=False)),
    }
    for (novelty, told), learner in made.items():
        state = learner.bases["grown"](learner.init(jax.random.key(0)), few, jax.random.key(7))
        assert (state.votes[..., UNKNOWN].sum() > 0) == told
        alike = state._replace(focus=jnp.float32(0))
        scores = np.asarray(protocol.reset_to_base(learner, alike, samples).after)[:, 2:4]
        np.testing.assert_allclose(scores.sum(-1), 1.0, rtol=1e-5)
        doubt[novelty, told] = scores[..., UNKNOWN]
    assert not doubt[False, False].any()
    assert (doubt[True, False] > 0).all() and (doubt[False, True] > 0).any()
    assert doubt[True, True].mean() > max(doubt[True, False].mean(), doubt[False, True].mean())


def test_a_reader_has_one_or_two_attributes():
    with pytest.raises(ValueError, match="reach=3"):
        TwoLayerRule(reach=3)
    with pytest.raises(ValueError, match="reach=1: with a canvas"):
        TwoLayerRule(reach=1, canvas=(4, 4))
