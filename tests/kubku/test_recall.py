"""Memories of a sample by hand-worked numbers, and the reader that they share."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from evidence.answers import Answer
from kubku import protocol
from kubku.base_states import Through, Training, outer_loss, withheld
from kubku.halo import BASE, ENTITY_CODE, EXPOSURES, FACTS, VALUES, Kind, Sample, Sizes, Statement
from kubku.learners import recall, registry, tabular
from kubku.learners.fast_weights import FastWeights, fast_weights, written
from kubku.learners.holographic import fillers, holographic, unitary
from kubku.learners.hopfield import completed, hopfield
from kubku.learners.rank_one import edited, first_layer, rank_one
from kubku.tasks import FAMILIES, generate

MEMORIES = ("fast_weights", "rank_one", "hopfield", "holographic", "dictionary_mlp")
SIZES = Sizes()


def sample_of(*said):
    """A sample that states (entity, attribute, value), the rest padding that would teach."""
    rows = np.full((3, EXPOSURES), 1)
    rows[:, : len(said)] = np.array(said).T
    shown = np.arange(EXPOSURES) < len(said)
    zeros = jnp.zeros(EXPOSURES, jnp.int32)
    exposure = Statement(zeros, *jnp.asarray(rows))
    blank = dict.fromkeys(Sample._fields, jnp.int32(0))
    return Sample(
        **(blank | {"exposure": exposure, "label": zeros + int(Answer.YES), "shown": shown})
    )


def asked(entity, attribute, value):
    return Statement(*(jnp.int32(part) for part in (2, entity, attribute, value)))


def memory(name):
    return registry.make(name, FAMILIES["stories"], Training(updates=1, batch=1))


@pytest.mark.parametrize("name", [*MEMORIES, "dictionary", "pair_counts"])
def test_several_people_in_a_sample_are_told_apart(name):
    """Two people with other values of one attribute, and a third of whom nothing was said."""
    learner = memory(name)
    state = learner.learn(
        learner.init(jax.random.key(0)), sample_of((3, 4, 1), (9, 4, 2), (9, 7, 0), (3, 8, 5))
    )
    expected = {
        (3, 4, 1): Answer.YES,
        (3, 4, 2): Answer.NO,
        (9, 4, 2): Answer.YES,
        (9, 4, 1): Answer.NO,
        (9, 7, 0): Answer.YES,
        (3, 8, 5): Answer.YES,
        (3, 7, 0): Answer.UNKNOWN,
        (9, 8, 5): Answer.UNKNOWN,
        (50, 4, 1): Answer.UNKNOWN,
    }
    for about, answer in expected.items():
        scores = learner.answer(state, asked(*about))
        assert float(scores.sum()) == pytest.approx(1, abs=1e-5)
        assert protocol.decide(scores, 0.5) == answer, about


@pytest.mark.parametrize("name", MEMORIES)
def test_training_on_what_was_recalled_once_is_training_through_the_memory(name):
    """The outer loss and its slopes, of samples read before and of samples learnt at each update;
    both leave out the same, what base states may not learn from.
    """
    samples = generate(FAMILIES["stories"], jax.random.key(2), 6, "pretrain")
    learner = memory(name)
    state = learner.init(jax.random.key(0))
    if name == "rank_one":
        state = rank_one()[1](state, samples)
    once = recall.through(learner)
    read = jax.vmap(once.read, (None, 0))(state, samples)
    slow = Through(learner.learn, learner.answer, 4)

    def loss(through, told):
        def of(params):
            return outer_loss(through, state._replace(params=params), told)

        return jax.value_and_grad(of)(state.params)

    (a, of_a), (b, of_b) = loss(slow, samples), loss(once, read)
    assert float(a) == pytest.approx(float(b), rel=1e-5) and float(a) > 0.1
    chex.assert_trees_all_close(of_a, of_b, rtol=1e-3, atol=1e-6)
    assert max(float(jnp.abs(leaf).max()) for leaf in jax.tree.leaves(of_a)) > 1e-3
    np.testing.assert_array_equal(read.held, withheld(samples))
    assert 0 < withheld(samples).mean() < 1


@pytest.mark.parametrize("name", MEMORIES)
def test_of_a_stranger_nothing_follows(name):
    """Whatever the reader makes of an empty memory, it is not what is answered."""
    learner = memory(name)
    state = learner.init(jax.random.key(0))
    loud = jax.tree.map(lambda w: w + 3.0, state.params)
    query = asked(3, BASE + 1, 1)
    empty = learner.answer(state._replace(params=loud), query)
    assert float(empty[Answer.UNKNOWN]) > 0.95
    told = learner.learn(state._replace(params=loud), sample_of((3, 4, 1)))
    assert not np.allclose(learner.answer(told, query), empty, atol=0.05)


def test_every_memory_recalls_what_a_sample_states(drawn):
    """Before any reader is trained, literals of unseen samples are right, and what is unstated is
    unknown: these memories are not straw men.
    """
    test = jax.tree.map(lambda leaf: leaf[:16], drawn("stories"))
    pretrain = jax.tree.map(lambda leaf: leaf[:256], drawn("stories", "pretrain"))
    stated = test.query.attribute < BASE
    for name in MEMORIES:
        learner = memory(name)
        make, key = learner.bases["meta"], jax.random.key(0)
        state = make.prepare(learner.init(key), pretrain, key)
        exposed = protocol.reset_to_base(learner, state, test)
        right = np.asarray(protocol.decide(exposed.after, 0.7)) == test.gold
        assert right[test.kind == Kind.LITERAL].mean() >= 0.99, name
        assert right[stated & (test.gold == Answer.UNKNOWN)].mean() >= 0.95, name
        # Nor held back: what was stated is said with all the confidence that there is, as a
        # dictionary says it, so that no threshold which something else needs costs it.
        sure = np.take_along_axis(exposed.after, test.gold[..., None], -1)[..., 0]
        assert (sure[test.kind == Kind.LITERAL] > 1 - 1e-4).mean() >= 0.99, name


# --- fast weights


def test_the_delta_rule_by_hand():
    """W = 0, k = (.6, .8), v = (1, 0), b = 1/2: W = ((.3, .4), (0, 0)). Then W k = (.5, 0), and the
    same again adds half of (.5, 0) k': ((.45, .6), (0, 0)), which makes .75 of k.
    """
    key, value = jnp.array([0.6, 0.8]), jnp.array([1.0, 0.0])
    once = written(jnp.zeros((2, 2)), key, value, jnp.float32(0.5))
    np.testing.assert_allclose(once, [[0.3, 0.4], [0, 0]], atol=1e-6)
    twice = written(once, key, value, jnp.float32(0.5))
    np.testing.assert_allclose(twice, [[0.45, 0.6], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(twice @ key, [0.75, 0], atol=1e-6)


def test_the_delta_rule_is_a_gradient_step():
    """Of |W k - v|^2 / 2 at rate b."""
    w, k, v = (
        jax.random.normal(jax.random.fold_in(jax.random.key(0), i), shape)
        for i, shape in enumerate(((3, 4), (4,), (3,)))
    )
    slope = jax.grad(lambda w: 0.5 * jnp.sum((w @ k - v) ** 2))(w)
    np.testing.assert_allclose(written(w, k, v, jnp.float32(0.3)), w - 0.3 * slope, atol=1e-5)


def test_fast_weights_of_blocks_are_those_of_outer_product_keys():
    """A slow loop over W of all attributes with the keys written out."""
    learner = fast_weights()
    said = ((3, 4, 1), (9, 4, 2), (9, 7, 0), (3, 4, 6))
    state: FastWeights = learner.init(jax.random.key(0))
    state = state._replace(rate=jnp.float32(0.7), steps=jnp.int32(2))
    whole = np.zeros((VALUES, BASE * ENTITY_CODE.shape[1]))
    for entity, attribute, value in said * 2:
        key = np.outer(np.eye(BASE)[attribute], ENTITY_CODE[entity]).ravel()
        whole += 0.7 * np.outer(np.eye(VALUES)[value] - whole @ key, key)
    blocks = whole.reshape(VALUES, BASE, -1).swapaxes(0, 1)
    np.testing.assert_allclose(learner.learn(state, sample_of(*said)).weights, blocks, atol=1e-5)


# --- a Hopfield network


def test_one_update_of_a_hopfield_network_by_hand():
    """Two patterns: key (1, 0), value 1 and key (0, 1), value 2. Asked with the key (1, 0) at
    b = ln 3: softmax(ln 3, 0) = (3/4, 1/4), so the value is (3/4, 1/4) and the key (3/4, 1/4),
    whose product with the one asked with is 3/4. Asked with (0, 1), the other way round.
    """
    own = jnp.eye(2)
    value, familiar = completed(
        jnp.ones(2), own, jnp.eye(2), jnp.ones(2, bool), jnp.log(jnp.float32(3))
    )
    np.testing.assert_allclose(value, [[0.75, 0.25], [0.25, 0.75]], atol=1e-6)
    np.testing.assert_allclose(familiar, [0.75, 0.75], atol=1e-6)


@pytest.mark.parametrize("beta", [0.0, 2.0, 300.0])
def test_a_hopfield_network_is_the_softmax_over_its_patterns(beta):
    """X softmax(b X'x) with patterns written out, against one exponential a pattern."""
    learner, room = hopfield(room=6), 6
    said = ((3, 4, 1), (9, 4, 2), (9, 7, 0), (3, 4, 6))
    state = learner.learn(learner.init(jax.random.key(0)), sample_of(*said))
    patterns = np.array(
        [
            np.concatenate([np.outer(np.eye(BASE)[a], ENTITY_CODE[e]).ravel(), np.eye(VALUES)[v]])
            for e, a, v in said
        ]
    )
    codes = ENTITY_CODE[np.asarray(state.entity)] @ ENTITY_CODE[3]
    own = np.asarray(state.attribute) == np.arange(BASE)[:, None]
    stored = np.asarray(state.value) >= 0
    assert stored.sum() == 4 < room
    values = jax.nn.one_hot(state.value, VALUES)
    value, familiar = completed(codes, own.astype(np.float32), values, stored, jnp.float32(beta))
    for attribute in range(BASE):
        key = np.outer(np.eye(BASE)[attribute], ENTITY_CODE[3]).ravel()
        products = patterns[:, : key.size] @ key
        share = np.exp(beta * (products - products.max()))
        new = share / share.sum() @ patterns
        np.testing.assert_allclose(value[attribute], new[key.size :], atol=1e-5)
        np.testing.assert_allclose(familiar[attribute], new[: key.size] @ key, atol=1e-5)


def test_the_oldest_patterns_give_way():
    learner = hopfield(room=3)
    state = learner.init(jax.random.key(0))
    for number in range(5):
        state = learner.learn(state, sample_of((number, 2, number)))
    assert sorted(np.asarray(state.value).tolist()) == [2, 3, 4] and state.written == 5


# --- a hologram


def test_binding_is_circular_convolution():
    """Spectra against the sum that defines it, c_j = sum_k a_k b_(j-k): of (1, 2, 3, 4) and
    (5, 6, 7, 8), c_0 = 1 5 + 2 8 + 3 7 + 4 6 = 66.
    """
    a, b = np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8])
    bound = np.fft.irfft(np.fft.rfft(a) * np.fft.rfft(b), 4)
    slow = [sum(a[k] * b[(j - k) % 4] for k in range(4)) for j in range(4)]
    assert slow[0] == 66
    np.testing.assert_allclose(bound, slow)


def test_a_hologram_compares_as_its_vectors_do():
    """The clean-up by spectra against inner products of real vectors, unbound by correlation."""
    dimensions, vectors = 64, [unitary(3, 64, seed) for seed in range(3)]
    who, role, value = vectors
    for spectra in vectors:  # of length 1, and its own inverse under correlation
        real = np.fft.irfft(spectra, dimensions)
        np.testing.assert_allclose((real**2).sum(-1), 1, atol=1e-5)
    trace = who[0] * role[1] * value[2] + who[1] * role[0] * value[1]
    freed = trace * np.conj(who[0])
    compared = fillers(role, value) @ np.concatenate([freed.real, freed.imag])
    slow = [
        np.fft.irfft(freed, dimensions) @ np.fft.irfft(role[a] * value[v], dimensions)
        for a in range(3)
        for v in range(3)
    ]
    np.testing.assert_allclose(compared, slow, atol=1e-5)
    assert np.argmax(slow) == 1 * 3 + 2 and slow[5] == pytest.approx(1, abs=0.5)


def test_a_hologram_of_one_fact_has_no_noise():
    learner = holographic(dimensions=64)
    state = learner.learn(learner.init(jax.random.key(0)), sample_of((3, 4, 1)))
    scores = learner.answer(state, asked(3, 4, 1))
    # exp(100) against exp(100 doubt) of knowing nothing; seven other values are noise
    assert float(scores[Answer.YES]) > 0.99


# --- an edited layer


def test_an_edit_by_hand():
    """W = (1, 0), C = diag(1, 1/4), k* = (1, 1), v* = 6. C^-1 k* = (1, 4), so (C^-1 k*)'k* = 5 and
    L = (6 - 1) / 5 = 1: W becomes (2, 4), which makes 6 of k*. With weight 1/5, C^-1 shrinks by
    (1, 4)(1, 4)' (1/5) / (1 + 1) = ((.1, .4), (.4, 1.6)).
    """
    layer, inverse = edited(
        jnp.array([[1.0, 0.0]]),
        jnp.diag(jnp.array([1.0, 4.0])),
        jnp.float32(0.2),
        jnp.array([[1.0, 1.0]]),
        jnp.array([[6.0]]),
        jnp.array([True]),
    )
    np.testing.assert_allclose(layer, [[2, 4]], atol=1e-6)
    np.testing.assert_allclose(inverse, [[0.9, -0.4], [-0.4, 2.4]], atol=1e-6)


def test_edits_one_after_the_other_against_inverted_covariances():
    """A slow loop that inverts C anew for each edit; what isn't told changes nothing."""
    rng = np.random.default_rng(0)
    keys, values = rng.normal(size=(5, 6)), rng.normal(size=(5, 2))
    told = np.array([True, True, False, True, True])
    root = rng.normal(size=(6, 6))
    covariance, layer = root @ root.T + np.eye(6), rng.normal(size=(2, 6))
    found = edited(
        *(jnp.asarray(x, jnp.float32) for x in (layer, np.linalg.inv(covariance), 0.7)),
        *(jnp.asarray(x, jnp.float32) for x in (keys, values)),
        jnp.asarray(told),
    )
    for key, value in zip(keys[told], values[told], strict=True):
        direction = np.linalg.inv(covariance) @ key
        layer = layer + np.outer((value - layer @ key) / (direction @ key), direction)
        covariance = covariance + 0.7 * np.outer(key, key)
    np.testing.assert_allclose(found[0], layer, atol=1e-3)
    np.testing.assert_allclose(found[1], np.linalg.inv(covariance), atol=1e-3)


def test_plain_edits_disturb_each_other_and_counted_ones_less():
    """What ROME says of single edits isn't so of several in turn unless C counts them."""
    learner, _ = rank_one()
    said = [(3, a, a % 3) for a in range(FACTS)] + [(9, a, (a + 1) % 3) for a in range(FACTS)]
    wrong = []
    for weight in (0.0, 100.0):
        state = learner.init(jax.random.key(0))._replace(weight=jnp.float32(weight))
        state = learner.learn(state, sample_of(*said))
        yes = [float(learner.answer(state, asked(*fact))[Answer.YES]) for fact in said]
        wrong.append(sum(score < 0.5 for score in yes))
    assert wrong[1] == 0 < wrong[0]


def test_the_layer_is_fitted_by_least_squares(drawn):
    """Against NumPy's own solution on the same facts; it recalls what is usual of an attribute."""
    pretrain = drawn("stories", "pretrain")
    learner, fit = rank_one()
    layer = np.asarray(fit(learner.init(jax.random.key(0)), pretrain).layer)
    said = pretrain.exposure
    entity, attribute, value = (
        np.asarray(part)[:, :FACTS].ravel() for part in (said.entity, said.attribute, said.value)
    )
    assert (pretrain.label[:, :FACTS] == Answer.YES).all() and pretrain.shown[:, :FACTS].all()
    first = first_layer(SIZES)
    keys = np.maximum(np.einsum("nkc,nc->nk", first[attribute], ENTITY_CODE[entity]), 0)
    solved = np.linalg.lstsq(keys, np.eye(VALUES)[value], rcond=None)[0].T
    made, best = (((np.eye(VALUES)[value] - keys @ w.T) ** 2).mean() for w in (layer, solved))
    assert best <= made < 1.01 * best < 0.95 * (np.eye(VALUES)[value] ** 2).mean()


# --- the reader


def test_shares_are_settled_by_hand():
    """Strengths .82 and .78 beside doubt .8: by e^2, e^-2 and 1 in units of doubt."""
    shares = recall.settled(jnp.array([0.82, 0.78]), 0.8)
    whole = 1 + np.exp(2) + np.exp(-2)
    np.testing.assert_allclose(shares, np.array([1, np.exp(2), np.exp(-2)]) / whole, rtol=1e-4)


def test_literals_are_shares_by_hand():
    """Of one attribute .2 for nothing, .5 for value 0, .3 for value 1."""
    shares = jnp.zeros((BASE, 1 + VALUES)).at[4, :3].set(jnp.array([0.2, 0.5, 0.3]))
    np.testing.assert_allclose(
        recall.literal(shares, SIZES, asked(0, 4, 0)), [0.3, 0.2, 0.5], atol=1e-6
    )
    np.testing.assert_allclose(
        recall.literal(shares, SIZES, asked(0, 4, 1)), [0.5, 0.2, 0.3], atol=1e-6
    )


def test_pairs_are_counted_of_whom_each_question_is_about():
    """Two people whose values differ: each one's question is counted with that one's values."""
    learner = tabular.pair_counts()
    said = sample_of((3, 4, 1), (9, 4, 2))
    zeros = jnp.zeros(2, jnp.int32)
    sample = said._replace(
        query=Statement(zeros + 2, jnp.array([3, 9]), zeros + BASE, zeros + 1),
        asked=jnp.ones(2, bool),
        kind=zeros + int(Kind.ENTAILED),
        gold=jnp.array([Answer.YES, Answer.NO], jnp.int32),
    )
    assert not withheld(sample).any()
    samples = jax.tree.map(lambda leaf: leaf[None], sample)
    state = learner.bases["counted"](learner.init(jax.random.key(0)), samples, jax.random.key(1))
    state = learner.learn(state, said)
    for entity, answer in ((3, Answer.YES), (9, Answer.NO)):
        scores = learner.answer(state, asked(entity, BASE, 1))
        assert protocol.decide(scores, 0.0) == answer
