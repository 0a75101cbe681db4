"""First layers by what a view holds: the same numbers as a product of matrices, and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import ActorCritic, make_mode, policy, sparse
from goodharts_jax.modes import observe
from goodharts_jax.policies import Output

NETWORK = ActorCritic()
MODE = make_mode((1.0, 0.2), (0.3, 0.9), 0, 0)
# Something is there even where nothing is, which no mode of ours has.
HAZE = MODE.replace(appearance=MODE.appearance.at[0].set(jnp.array([0.1, -0.2])))
NO_NOISE = jnp.zeros((), jnp.uint32)


def views(batch, most, size=11, seed=0):
    """So many views of 0 to `most` items each, the first of them the most. uint8[batch, V, V]."""
    draw = np.random.default_rng(seed)
    found = np.zeros((batch, size * size), np.uint8)
    for i, view in enumerate(found):
        places = draw.permutation(view.size)[: most if i == 0 else draw.integers(most + 1)]
        view[places] = draw.integers(1, 3, len(places))
    return jnp.asarray(found.reshape(batch, size, size))


def dense(params, mode):
    return lambda view, noise_word: Output(*NETWORK.apply(params, observe(mode, view, noise_word)))


def both(mode, batch):
    """Outputs and gradients of the two ways."""
    params = NETWORK.init(jax.random.key(1), jnp.zeros((11, 11, 2)))

    def loss(params, way):
        out = jax.vmap(way(params), (0, None))(batch, NO_NOISE)
        return jnp.sum(out.logits[:, 1] ** 2) + jnp.sum(out.value**2), out

    ways = (lambda params: policy(NETWORK, params, mode)), (lambda params: dense(params, mode))
    return [
        jax.jit(jax.grad(lambda p, way=way: loss(p, way), has_aux=True))(params) for way in ways
    ]


@pytest.mark.parametrize("most", [0, 1, 4, sparse.MOST, sparse.MOST + 1, 121])
@pytest.mark.parametrize("mode", [MODE, HAZE])
def test_outputs_and_gradients_are_those_of_the_network(mode, most):
    (gradients, found), (wanted_gradients, wanted) = both(mode, views(16, most))
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-6), found, wanted)
    scale = max(float(jnp.abs(x).max()) for x in jax.tree.leaves(wanted_gradients))
    for x, y in zip(jax.tree.leaves(gradients), jax.tree.leaves(wanted_gradients), strict=True):
        np.testing.assert_allclose(x, y, atol=2e-6 * scale)


@pytest.mark.parametrize("most", [3, 121])
def test_one_view_and_batches_of_batches_too(most):
    params = NETWORK.init(jax.random.key(1), jnp.zeros((11, 11, 2)))
    act, wanted = policy(NETWORK, params, MODE), dense(params, MODE)
    batch = views(6, most)
    one = act(batch[0], NO_NOISE)
    np.testing.assert_allclose(one.logits, wanted(batch[0], NO_NOISE).logits, atol=1e-6)
    many = jax.vmap(jax.vmap(act, (0, None)), (0, None))(batch.reshape(2, 3, 11, 11), NO_NOISE)
    flat = jax.vmap(wanted, (0, None))(batch, NO_NOISE)
    np.testing.assert_allclose(many.logits.reshape(6, -1), flat.logits, atol=1e-6)
    # Several networks, one view.
    params = jax.vmap(lambda key: NETWORK.init(key, jnp.zeros((11, 11, 2))))(
        jax.random.split(jax.random.key(2), 3)
    )
    found = jax.vmap(lambda p: policy(NETWORK, p, MODE)(batch[0], NO_NOISE).logits)(params)
    wanted = jax.vmap(lambda p: dense(p, MODE)(batch[0], NO_NOISE).logits)(params)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("size", [3, 5, 7, 11, 13])
def test_items_are_counted_out_in_order(size):
    cells = size * size
    for view in np.asarray(views(20, min(cells, 20), size)):
        places = np.flatnonzero(view)
        rows, more = sparse.items(jnp.asarray(view), sparse.MOST)
        wanted = (view.ravel()[places].astype(int) - 1) * cells + places
        wanted = wanted[: sparse.MOST].tolist()
        assert rows.tolist() == wanted + [2 * cells] * (sparse.MOST - len(wanted))
        assert bool(more) == (len(places) > sparse.MOST)


class Doubtful(ActorCritic):
    """Somebody's own, which halves all logits."""

    def __call__(self, observation):
        logits, value = super().__call__(observation)
        return Output(logits / 2, value)


def test_a_network_of_ones_own_is_asked_itself():
    params = NETWORK.init(jax.random.key(1), jnp.zeros((11, 11, 2)))
    view = views(1, 5)[0]
    halved = policy(Doubtful(), params, MODE)(view, NO_NOISE).logits
    whole = policy(NETWORK, params, MODE)(view, NO_NOISE).logits
    np.testing.assert_allclose(2 * halved, whole, atol=1e-6)
    assert np.abs(whole).max() > 1e-3


def test_with_noise_the_whole_view_is_multiplied(monkeypatch):
    monkeypatch.setattr(sparse, "product", None)
    noisy = make_mode((1.0, 0.2), (0.3, 0.9), 0, 0, noise=0.5)
    params = NETWORK.init(jax.random.key(1), jnp.zeros((11, 11, 2)))
    word, view = jnp.uint32(77), views(1, 5)[0]
    found = policy(NETWORK, params, noisy)(view, word)
    np.testing.assert_array_equal(found.logits, dense(params, noisy)(view, word).logits)
