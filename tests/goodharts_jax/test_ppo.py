"""PPO: its equations by hand and against rlax, its loop by worlds with a known answer."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import rlax

from goodharts_jax import modes, networks, ppo, rollouts, world
from goodharts_jax.world import FOOD, MOVES, NUM_ACTIONS, POISON

SEES_TRUTH = (1.0, 0.0), (0.0, 1.0)


class EquationsTest(chex.TestCase):
    """Each equation with and without jit, and under vmap."""

    @chex.variants(with_jit=True, without_jit=True)
    def test_generalised_advantages_by_hand(self):
        advantages = self.variant(ppo.generalised_advantages)
        # The life ends with the second step; the third is the last of the rollout.
        r_t, discount_t = jnp.array([1.0, 0.0, 2.0]), jnp.array([0.5, 0.0, 0.5])
        v_tm1, v_t = jnp.array([1.0, 2.0, 3.0]), jnp.array([2.0, 3.0, 4.0])
        # Errors 1 + 0.5*2 - 1 = 1, 0 - 2 = -2, 2 + 0.5*4 - 3 = 1; a decay of 0.5*0.5 = 0.25.
        found = advantages(r_t, discount_t, v_tm1, v_t, 0.5)
        np.testing.assert_allclose(found, [1 + 0.25 * -2, -2, 1])
        # A step may end in another state than the next begins with: error 1 + 0.5*6 - 1 = 3.
        found = advantages(r_t, discount_t, v_tm1, v_t.at[0].set(6.0), 0.5)
        np.testing.assert_allclose(found, [3 + 0.25 * -2, -2, 1])

    @chex.variants(with_jit=True, without_jit=True)
    def test_generalised_advantages_against_rlax(self):
        draw = np.random.default_rng(0)
        r_t = draw.normal(size=(5, 20)).astype(np.float32)
        values = draw.normal(size=(5, 21)).astype(np.float32)
        discount_t = np.where(draw.random((5, 20)) < 0.2, 0.0, 0.97).astype(np.float32)
        # rlax takes one sequence of values, ours the values before and after each step apart.
        many = self.variant(jax.vmap(ppo.generalised_advantages, (0, 0, 0, 0, None)))
        found = many(r_t, discount_t, values[:, :-1], values[:, 1:], 0.9)
        for i in range(5):
            expected = rlax.truncated_generalized_advantage_estimation(
                jnp.asarray(r_t[i]), jnp.asarray(discount_t[i]), 0.9, jnp.asarray(values[i])
            )
            np.testing.assert_allclose(found[i], expected, rtol=1e-5, atol=1e-6)

    @chex.variants(with_jit=True, without_jit=True)
    def test_policy_loss_by_hand(self):
        ratio = jnp.array([1.5, 0.5, 1.5, 0.5, 1.1])
        advantage = jnp.array([1.0, 1.0, -1.0, -1.0, 2.0])
        # Terms min(1.5, 1.2), min(0.5, 0.8), min(-1.5, -1.2), min(-0.5, -0.8), 2.2.
        loss, gradient = self.variant(jax.value_and_grad(ppo.policy_loss))(ratio, advantage, 0.2)
        np.testing.assert_allclose(loss, -(1.2 + 0.5 - 1.5 - 0.8 + 2.2) / 5, rtol=1e-6)
        # Nothing is to be gained where the clipped term is the lesser.
        np.testing.assert_allclose(gradient, [0, -0.2, 0.2, 0, -0.4], rtol=1e-6)

    @chex.variants(with_jit=True, without_jit=True)
    def test_policy_loss_against_rlax(self):
        draw = np.random.default_rng(1)
        ratio = jnp.asarray(draw.lognormal(0, 0.4, (4, 50)), jnp.float32)
        advantage = jnp.asarray(draw.normal(size=(4, 50)), jnp.float32)
        with_gradient = jax.value_and_grad(ppo.policy_loss)
        found = self.variant(jax.vmap(with_gradient, (0, 0, None)))(ratio, advantage, 0.2)
        expected = jax.vmap(jax.value_and_grad(rlax.clipped_surrogate_pg_loss), (0, 0, None))(
            ratio, advantage, 0.2
        )
        chex.assert_trees_all_close(found, expected, rtol=1e-5)

    @chex.variants(with_jit=True, without_jit=True)
    def test_value_loss_by_hand(self):
        value, old = jnp.array([1.0, 3.0, 0.0, 2.0]), jnp.array([0.9, 2.0, 1.0, 1.0])
        # To a target of 2, squared: 1, 1, 4, 0; clipped to 1.0, 2.2, 0.8, 1.2: 1, 0.04, 1.44, 0.64.
        loss = self.variant(ppo.value_loss)(value, old, jnp.full(4, 2.0), 0.2)
        np.testing.assert_allclose(loss, 0.5 * (1 + 1 + 4 + 0.64) / 4, rtol=1e-6)

    @chex.variants(with_jit=True, without_jit=True)
    def test_value_loss_without_a_clip_is_half_the_squared_error(self):
        draw = np.random.default_rng(2)
        value, old, target = (jnp.asarray(x, jnp.float32) for x in 5 * draw.normal(size=(3, 50)))
        with_gradient = self.variant(jax.value_and_grad(ppo.value_loss))
        loss, gradient = with_gradient(value, old, target, jnp.inf)
        np.testing.assert_allclose(loss, 0.5 * np.mean((value - target) ** 2), rtol=1e-5)
        np.testing.assert_allclose(gradient, (value - target) / 50, rtol=1e-4, atol=1e-6)
        # The old value matters as soon as there is a clip.
        assert abs(with_gradient(value, old, target, 1.0)[0] - loss) > 0.1

    @chex.variants(with_jit=True, without_jit=True)
    def test_sample_inverts_the_distribution(self):
        logits = jnp.array([0.0, 2.0, -3.0, 1.0, 0.5, -1.0, 0.0, -0.5])
        num_words = 1 << 16
        words = jnp.arange(num_words, dtype=jnp.uint32) * jnp.uint32((1 << 32) // num_words)
        action = self.variant(jax.vmap(rollouts.sample, (None, 0)))(logits, words)
        share = np.bincount(action, minlength=NUM_ACTIONS) / num_words
        # Words an equal distance apart miss each probability by less than that distance.
        np.testing.assert_allclose(share, jax.nn.softmax(logits), atol=1.1 / num_words)

    @chex.variants(with_jit=True, without_jit=True)
    def test_sample_stays_within_the_actions(self):
        scale = jnp.array([0.0, 1.0, 30.0, 1000.0])[:, None, None]
        logits = (scale * jax.random.normal(jax.random.key(0), (50, NUM_ACTIONS))).reshape(-1, 8)
        words = jnp.array([0, 1, 255, 256, 2**31, 2**32 - 257, 2**32 - 1], jnp.uint32)
        every = jax.vmap(jax.vmap(rollouts.sample, (None, 0)), (0, None))
        action = self.variant(every)(logits, words)
        assert action.dtype == jnp.int32
        assert action.min() == 0
        assert action.max() == NUM_ACTIONS - 1


@pytest.mark.parametrize(
    ("network", "num_params"),
    [
        # Two towers, each of 242 inputs and two layers; 8 logits and a value.
        (networks.ActorCritic(), 2 * (242 * 64 + 64 + 64 * 64 + 64) + 64 * 8 + 8 + 64 + 1),
        # 3x3 convolutions 2 -> 4 -> 6 that keep the 11 x 11; 726 inputs.
        (networks.ActorCritic((4, 6), (8,)), 2 * (76 + 222 + 726 * 8 + 8) + 8 * 8 + 8 + 8 + 1),
    ],
)
def test_network(network, num_params):
    view = jax.random.bernoulli(jax.random.key(0), 0.1, (11, 11, 2)).astype(jnp.float32)
    params = jax.jit(network.init)(jax.random.key(1), view)
    assert sum(leaf.size for leaf in jax.tree.leaves(params)) == num_params
    output = jax.jit(network.apply)(params, view)
    chex.assert_shape(output.logits, (NUM_ACTIONS,))
    chex.assert_shape(output.value, ())
    # It begins as a random walk, not quite: the view already matters.
    np.testing.assert_allclose(jax.nn.softmax(output.logits), 1 / 8, atol=0.02)
    assert np.ptp(output.logits) > 0


@pytest.mark.parametrize("network", [networks.ActorCritic(), networks.ActorCritic((4,), (8,))])
def test_towers_have_nothing_in_common(network):
    """What the logits learn leaves the value's tower alone, and the other way round."""
    view = jax.random.bernoulli(jax.random.key(0), 0.1, (11, 11, 2)).astype(jnp.float32)
    params = network.init(jax.random.key(1), view)
    of_logits = jax.grad(lambda params: jnp.sum(network.apply(params, view).logits ** 2))(params)
    of_value = jax.grad(lambda params: network.apply(params, view).value ** 2)(params)
    for gradient, own, other in ((of_logits, "policy", "value"), (of_value, "value", "policy")):
        assert gradient["params"].keys() == {"policy", "value"}
        assert all(np.any(leaf != 0) for leaf in jax.tree.leaves(gradient["params"][own]))
        assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(gradient["params"][other]))


# A torus of 5 x 5 that one view takes in whole, with no network but a linear one: values and
# rewards can be set to known numbers.
TINY = ppo.Plan(
    num_worlds=8,
    rollout_length=4,
    episode_length=16,
    epochs=1,
    num_minibatches=1,
    network=networks.ActorCritic(hidden=()),
)
FULL = world.make_world(5, 2, food=(23, 23), poison=(0, 0))
BARE = world.make_world(5, 2, food=(0, 0), poison=(0, 0))
IDLE = modes.make_mode(*SEES_TRUTH, 0.0, 0.0, mortal=False)

advance = jax.jit(ppo.advance, static_argnums=(0, 5))
begin = jax.jit(ppo.start, static_argnums=0)


def hyper_with(**changes) -> ppo.Hyper:
    numbers = {"learning_rate": (1e-3, 1e-3), "entropy_weight": (0.0, 0.0), "max_grad_norm": 1e6}
    return ppo.make_hyper(100, **(numbers | changes))


@pytest.fixture(scope="module")
def counter() -> ppo.TrainState:
    """In worlds full of food; its value is a tenth of the food in view, its policy lopsided."""
    state = begin(TINY, FULL, jax.random.key(0))
    params = jax.tree.map(jnp.zeros_like, state.params)
    policy, value = heads(state.replace(params=params))
    policy["bias"] = policy["bias"].at[0].set(2.0)
    value["kernel"] = value["kernel"].at[::2].set(0.1)  # food is every other input
    return state.replace(params=params)


def heads(state: ppo.TrainState) -> tuple[dict, dict]:
    """The last layer of both towers: all there is of TINY's."""
    towers = state.params["params"]
    return towers["policy"]["Dense_0"], towers["value"]["Dense_0"]


def test_renewal_bootstraps_from_the_state_before_it(counter):
    """The worlds are full before their renewal, and bare after it."""
    hyper = hyper_with(discount=0.9, gae_lambda=0.8)
    state, history = advance(TINY, BARE, hyper, IDLE, counter, 1)
    assert state.worlds.items[:, FOOD].tolist() == [0] * 2 + [23] * 6
    # 23 food in view: each value is 2.3 and each error 0.9 * 2.3 - 2.3; a decay of 0.9 * 0.8.
    error = -0.23
    advantages = error * np.array([1 + 0.72 + 0.72**2 + 0.72**3, 1 + 0.72 + 0.72**2, 1.72, 1])
    # The old value is still the new one, so the loss is half the squared advantage.
    np.testing.assert_allclose(history.value_loss, [0.5 * np.mean(advantages**2)], rtol=1e-5)


def test_death_ends_what_is_to_come(counter):
    """In a world where every step is fatal, the return is the reward for it."""
    deadly = BARE.replace(move_cost=jnp.int32(30_000))
    mode = modes.make_mode(*SEES_TRUTH, 1.0, 0.0, death_reward=-4.0)
    state, history = advance(TINY, deadly, hyper_with(), mode, counter, 1)
    assert history.deaths == 1
    np.testing.assert_allclose(history.reward, history.food - 4, rtol=1e-6)
    # Value 2.3, return -3 with food and -4 without.
    food = history.food[0]
    expected = 0.5 * (food * (2.3 + 3) ** 2 + (1 - food) * (2.3 + 4) ** 2)
    np.testing.assert_allclose(history.value_loss, [expected], rtol=1e-5)
    assert heads(state)[1]["bias"][0] < 0  # and the value falls


def test_renewal_goes_round_the_slices(counter):
    state, ages, food = counter, [], []
    for _ in range(5):
        state, _ = advance(TINY, BARE, hyper_with(), IDLE, state, 1)
        ages.append(state.worlds.age[::2].tolist())
        food.append(state.worlds.items[:, FOOD].tolist())
        assert state.worlds.age[::2].tolist() == state.worlds.age[1::2].tolist()
    # One slice of two worlds an update; immortals live on for four steps an update elsewhere.
    assert ages == [[0, 4, 4, 4], [4, 0, 8, 8], [8, 4, 0, 12], [12, 8, 4, 0], [0, 12, 8, 4]]
    assert food == [[0] * n + [23] * (8 - n) for n in (2, 4, 6, 8, 8)]


def test_entropy_is_rewarded(counter):
    """At a weight that drowns the rest, what was likely becomes less so."""
    state, history = advance(TINY, BARE, hyper_with(entropy_weight=(1e3, 1e3)), IDLE, counter, 1)
    before, after = (jax.nn.softmax(heads(one)[0]["bias"]) for one in (counter, state))
    np.testing.assert_allclose(history.entropy, [-np.sum(before * np.log(before))], rtol=1e-5)
    assert after[0] < before[0]
    assert np.all(after[1:] > before[1:])


def test_learning_rate_is_linear_in_progress(counter):
    hyper = hyper_with(learning_rate=(1e-2, 2e-3))
    moved = {}
    for update in (0, 50, 100, 400):
        state, _ = advance(TINY, BARE, hyper, IDLE, counter.replace(update=jnp.int32(update)), 1)
        # Adam's first step is the learning rate, up or down.
        moved[update] = float(jnp.abs(heads(state)[1]["bias"][0]))
    assert moved == pytest.approx({0: 1e-2, 50: 6e-3, 100: 2e-3, 400: 2e-3}, rel=1e-2)


def test_gradients_are_clipped_by_their_global_norm(counter):
    free, history = advance(TINY, BARE, hyper_with(), IDLE, counter, 1)
    norm = float(history.grad_norm[0])
    bound, _ = advance(TINY, BARE, hyper_with(max_grad_norm=norm / 4), IDLE, counter, 1)
    # Adam's first moment is a tenth of the first gradient.
    np.testing.assert_allclose(optax.tree.norm(free.opt_state.mu), norm / 10, rtol=1e-4)
    np.testing.assert_allclose(optax.tree.norm(bound.opt_state.mu), norm / 40, rtol=1e-4)


@pytest.mark.parametrize("noise", [None, 0.3])
def test_a_rollout_can_be_seen_again(noise):
    """What is stored gives back the very probabilities and values that were acted on."""
    rules = world.make_world(9, 2, food=(20, 20), poison=(15, 15))
    mode = modes.make_mode((0.5, 0.5), (1.0, 1.0), 1.0, -2.0, noise=noise)
    state = begin(TINY, rules, jax.random.key(1))
    # A policy that is sure of itself, so that what it sees matters.
    params = jax.tree.map(lambda x: 100 * x, state.params)
    act = networks.policy(TINY.network, params, mode)
    collect = jax.jit(lambda worlds, key: rollouts.collect(rules, act, worlds, key, 40))
    worlds, rollout, last_view = collect(state.worlds, jax.random.key(2))
    again = jax.jit(jax.vmap(jax.vmap(act)))(rollout.view, rollout.noise_word)
    log_probs = jax.nn.log_softmax(again.logits)
    log_prob = jnp.take_along_axis(log_probs, rollout.action[..., None], -1)[..., 0]
    np.testing.assert_allclose(log_prob, rollout.log_prob, atol=2e-5)
    np.testing.assert_allclose(again.value, rollout.value, atol=2e-4)
    assert np.ptp(rollout.log_prob) > 0.5

    # Views, actions and events belong together: what lay in the move's direction was eaten.
    dx, dy = np.array(MOVES).T[:, rollout.action]
    t, n = np.indices(rollout.action.shape)
    np.testing.assert_array_equal(
        np.asarray(rollout.view)[t, n, 2 + dy, 2 + dx], rollout.event.eaten
    )
    assert {FOOD, POISON} < set(np.unique(rollout.event.eaten))
    np.testing.assert_array_equal(last_view, jax.vmap(world.view, (None, 0))(rules, worlds))


@pytest.mark.parametrize("noise", [None, 0.5])
def test_the_first_gradient_step_starts_from_a_ratio_of_one(noise):
    rules = world.make_world(5, 2, food=(8, 8), poison=(7, 7))
    mode = modes.make_mode((0.5, 0.5), (1.0, 1.0), 1.0, -2.0, noise=noise)
    state = begin(TINY, rules, jax.random.key(1))
    state = state.replace(params=jax.tree.map(lambda x: 100 * x, state.params))
    _, history = advance(TINY, rules, hyper_with(), mode, state, 1)
    assert abs(history.kl[0]) < 1e-6
    assert history.clipped == 0
    # So the surrogate is the mean of the normalised advantages.
    assert abs(history.policy_loss[0]) < 1e-5


SHORT = ppo.Plan(
    num_worlds=8,
    rollout_length=16,
    episode_length=64,
    epochs=2,
    num_minibatches=2,
    network=networks.ActorCritic(hidden=(16,)),
)
MEADOW = world.make_world(9, 2, food=(10, 20), poison=(5, 10))


@pytest.fixture(scope="module")
def mode() -> modes.Mode:
    return modes.make_mode(*SEES_TRUTH, 1.0, -2.0, step_reward=-0.1, death_reward=-4.0)


def without_keys(state: ppo.TrainState) -> ppo.TrainState:
    return state.replace(key=jax.random.key_data(state.key))


def test_a_run_in_chunks_is_the_same_run(mode):
    hyper, key = hyper_with(), jax.random.key(4)
    train = jax.jit(ppo.train, static_argnums=(0, 5))
    whole, history = train(SHORT, MEADOW, hyper, mode, key, 4)
    half, first = advance(SHORT, MEADOW, hyper, mode, begin(SHORT, MEADOW, key), 2)
    chunked, second = advance(SHORT, MEADOW, hyper, mode, half, 2)
    assert whole.update == chunked.update == 4
    chex.assert_trees_all_equal(without_keys(whole), without_keys(chunked))
    joined = jax.tree.map(lambda *parts: jnp.concatenate(parts), first, second)
    chex.assert_trees_all_equal(history, joined)


def test_a_population_is_its_runs(mode):
    proxy = modes.make_mode((0.5, 0.5), (1.0, 1.0), 0.5, 1.0, mortal=False)
    rows, keys, hyper = [mode, proxy, mode], jax.random.split(jax.random.key(5), 3), hyper_with()
    train = jax.vmap(ppo.train, (None, None, None, 0, 0, None))
    together, histories = jax.jit(train, static_argnums=(0, 5))(
        SHORT, MEADOW, hyper, modes.stack(rows), keys, 2
    )
    for i, (row, key) in enumerate(zip(rows, keys, strict=True)):
        alone, history = advance(SHORT, MEADOW, hyper, row, begin(SHORT, MEADOW, key), 2)
        of_many, of_histories = jax.tree.map(
            lambda x, i=i: x[i], (without_keys(together), histories)
        )
        chex.assert_trees_all_equal(of_many.worlds, alone.worlds)
        chex.assert_trees_all_close(of_many.params, alone.params, atol=1e-5)
        chex.assert_trees_all_close(of_histories, history, atol=1e-5, rtol=1e-4)


def test_ppo_finds_a_known_optimum():
    """On a torus half food, half poison, food lies beside the agent in all but 1 step in 1,400.

    12 of the 24 other cells are food: none of 8 is with probability C(12,8) / C(24,8). Whoever
    looks eats food in every step; whoever doesn't is paid (12 - 11) / 24 for each.
    """
    rules = world.make_world(5, 2, food=(12, 12), poison=(11, 11))
    mode = modes.make_mode(*SEES_TRUTH, 1.0, -1.0, mortal=False)
    plan = ppo.Plan(32, 16, 64, 4, 4, networks.ActorCritic(hidden=(32,)))
    hyper = ppo.make_hyper(80, learning_rate=(3e-3, 3e-4), entropy_weight=(1e-2, 0.0), discount=0.5)
    train = jax.jit(ppo.train, static_argnums=(0, 5))
    _, history = train(plan, rules, hyper, mode, jax.random.key(6), 80)
    assert abs(history.reward[0] - 1 / 24) < 0.15
    assert np.mean(history.reward[-10:]) > 0.95
    assert np.mean(history.poison[-10:]) < 0.03
    assert np.mean(history.explained_variance[:2]) < 0.5
    assert history.entropy[0] == pytest.approx(np.log(8), abs=0.01)
