"""Rewards and what guards them: arithmetic by hand, and what is off changes nothing."""

from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import modes, occupancy, ppo, rewards
from goodharts_jax.networks import ActorCritic, policy
from goodharts_jax.policies import at_temperature
from goodharts_jax.rollouts import collect
from goodharts_jax.world import FOOD, POISON, Event, make_world, reset

GOLD = jnp.array([0.0, 1.0, -2.0]), jnp.float32(-0.1)
ATE = Event(jnp.uint8(FOOD), jnp.array(False), *[jnp.int32(0)] * 2, jnp.zeros(2, jnp.int32))
SAID = jnp.array([0.4, 0.8, 0.0])
RULES = make_world(16, 2, food=(20, 20), poison=(20, 20))
SEES = modes.make_mode((1, 0), (0, 1), 1.0, -2.0, step_reward=-0.1, mortal=False)


def guarded(draw=0.9, proxy=0.4, said=SAID, **changes):
    guard = rewards.no_guard(*GOLD, **changes)
    return float(rewards.guarded(guard, jnp.float32(proxy), said, ATE, jnp.float32(draw)))


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, 0.4),
        ({"deviations": 2.0}, 0.4 - 2 * np.std(SAID)),
        ({"least": 1.0}, 0.0),
        ({"least": 0.5}, 0.2),
        ({"cap": 0.25}, 0.25),
        ({"audit": 0.95, "audit_weight": 1.0}, 0.9),  # what eating food truly gains
        ({"audit": 0.5, "audit_weight": 1.0}, 0.4),  # not this step
        ({"audit": 0.95, "audit_weight": 0.0}, 0.4),
        ({"audit": 0.95, "audit_weight": 4.0}, 0.4 + 4 * 0.5),
        ({"audit": 0.95, "audit_weight": 4.0, "proxy": 0.0}, 4 * 0.9),
        ({"cap": 0.25, "audit": 0.95, "audit_weight": 1.0}, 0.9),  # the truth is not capped
    ],
)
def test_remedies_by_hand(changes, wanted):
    assert guarded(**changes) == pytest.approx(wanted)


def test_an_unbiased_audit_is_not_limited():
    """A limit on a step's reward, as the table has, would bias what is weighted with 1 / audit."""
    draws = (np.arange(1000) + 0.5) / 1000
    paid = [guarded(draw, proxy=-1.9, audit=0.01, audit_weight=100.0) for draw in draws]
    assert max(paid) > rewards.REWARD_LIMIT
    assert np.mean(paid) == pytest.approx(0.9, abs=1e-3)


def test_leaving_costs_beyond_a_bound_alone():
    """Twice as often as at first is free, where a quantile of one half allows it."""
    ratio = jnp.log(jnp.array([0.5, 1.0, 2.0, 8.0]))
    assert not rewards.leaving(rewards.no_guard(*GOLD, quantile=0.1), ratio).any()
    half = rewards.leaving(rewards.no_guard(*GOLD, excess=3.0, quantile=0.5), ratio)
    assert half == pytest.approx([0, 0, 0, 3 * np.log(4)], abs=1e-6)
    assert rewards.leaving(rewards.no_guard(*GOLD, kl=2.0), ratio) == pytest.approx(2 * ratio)


def test_a_remedy_of_ones_own_is_off_at_strength_0():
    def halved(proxy, members, strength):
        return proxy - strength * members[0]

    for own, wanted in ((0.0, 0.4), (0.5, 0.2)):
        assert guarded(functions=(halved,), own=jnp.array([own])) == pytest.approx(wanted)


def model(key, members=2):
    draw = [
        jax.random.normal(k, (members, *s))
        for k, s in zip(
            jax.random.split(jax.random.key(key), 3), ((58, 64), (64,), (64,)), strict=True
        )
    ]
    return rewards.RewardModel(*draw, mean=jnp.zeros(members), scale=jnp.full(members, 0.1))


@pytest.fixture(scope="module")
def rollout():
    worlds = jax.vmap(reset, (None, 0))(RULES, jax.random.split(jax.random.key(0), 16))
    network = ActorCritic((), (8,))
    params = network.init(jax.random.key(1), jnp.zeros((5, 5, 2)))
    act = at_temperature(policy(network, params, SEES), 1.0)
    rules = RULES.replace(mortal=jnp.array(False))
    return collect(rules, act, worlds, jax.random.key(2), 64)[1]


@pytest.mark.parametrize("noise", [None, 0.3])
def test_a_step_is_foreseen_as_it_is_rewarded(rollout, noise):
    """What a proxy makes of a view and an action is what the physics then gives."""
    own = SEES.reward.replace(model=model(0), members=jnp.array([0.75, 0.25]))
    mode = SEES.replace(reward=own, noise=None if noise is None else jnp.float32(noise))
    after = jnp.zeros_like(rollout.view[0, 0])
    rewarded = jax.vmap(jax.vmap(lambda step: modes.reward(mode, step, after, jnp.float32(1))))
    told = jax.vmap(jax.vmap(lambda v, a, n: modes.foreseen(mode, v, a, n)))
    foreseen = told(rollout.view, rollout.action, rollout.noise_word)
    np.testing.assert_allclose(rewarded(rollout), foreseen, atol=1e-5)
    assert {FOOD, POISON} < set(np.asarray(rollout.event.eaten).ravel().tolist())
    assert np.std(foreseen) > 0.1


def test_what_is_off_changes_nothing(rollout):
    own = SEES.reward.replace(model=model(0), members=jnp.array([1.0, 0.0]))
    off = own.replace(guard=rewards.no_guard(*GOLD))
    after = jnp.zeros_like(rollout.view[0, 0])
    for step in (jax.tree.map(lambda x, i=i: x[i, 0], rollout) for i in range(20)):
        bare, guard = (
            modes.reward(SEES.replace(reward=one), step, after, jnp.float32(1))
            for one in (own, off)
        )
        assert bare == pytest.approx(float(guard), abs=1e-6)


def test_a_model_is_never_told_what_was_eaten(rollout):
    step = jax.tree.map(lambda x: x[0, 0], rollout)
    paid = SEES.replace(
        reward=replace(rewards.empty_reward(), model=model(0, 1), members=jnp.ones(1))
    )
    after = jnp.zeros_like(step.view)
    told = [
        modes.reward(paid, step.replace(event=ATE.replace(eaten=jnp.uint8(kind))), after, 1.0)
        for kind in range(3)
    ]
    assert told[0] == told[1] == told[2] != 0


def test_a_discriminator_learns_the_log_ratio_of_occupancies(rollout):
    """One action is four times as likely under the policy as under the reference."""
    draw = np.random.default_rng(0)
    view = jnp.zeros((8192, 5, 5), jnp.uint8)
    own = jnp.asarray(draw.choice(8, 8192, p=[0.4, *[0.6 / 7] * 7]))
    reference = jnp.asarray(draw.choice(8, 8192, p=[0.1, *[0.9 / 7] * 7]))
    found = occupancy.start(5, jax.random.key(0))
    assert np.allclose(occupancy.logits(found.params, view[:8], jnp.arange(8)), 0)
    improve = jax.jit(occupancy.improve)
    for _ in range(100):
        found = improve(found, (view, own), (view, reference))
    logit = occupancy.logits(found.params, view[:8], jnp.arange(8))
    assert logit[0] == pytest.approx(np.log(4), abs=0.15)
    np.testing.assert_allclose(logit[1:], np.log(2 / 3), atol=0.2)


def test_a_policy_pays_for_leaving_its_anchor():
    """In the first update it is the anchor itself: only occupancies can differ, and KL is 0."""
    plan = ppo.Plan(8, 8, 16, num_minibatches=2, network=ActorCritic((), (8,)))
    state = ppo.start(plan, RULES, jax.random.key(0))
    other = ppo.start(plan, RULES, jax.random.key(9)).params

    def rewarded(anchor, weight):
        guard = rewards.no_guard(*GOLD, kl=weight, anchor=anchor)
        mode = SEES.replace(reward=SEES.reward.replace(guard=guard))
        _, history = ppo.advance(plan, RULES, ppo.make_hyper(2), mode, state, 1)
        return float(history.reward[0])

    bare = rewarded(state.params, 0.0)
    assert rewarded(state.params, 1.0) == pytest.approx(bare, abs=1e-6)
    assert rewarded(other, 100.0) != pytest.approx(bare, abs=1e-6)


def test_only_runs_that_pay_for_their_occupancy_train_a_discriminator():
    """And of the others nothing is moved by what the population holds for them."""
    plan = ppo.Plan(8, 8, 16, num_minibatches=2, network=ActorCritic((), (8,)))
    params = ppo.start(plan, RULES, jax.random.key(0)).params
    reference = jnp.zeros((16, RULES.view_size, RULES.view_size), jnp.uint8), jnp.zeros(16, int)

    def trained(**changes):
        guard = rewards.no_guard(*GOLD, **changes)
        mode = SEES.replace(reward=SEES.reward.replace(guard=guard))
        first = ppo.start(plan, RULES, jax.random.key(0), mode)
        last, history = ppo.advance(plan, RULES, ppo.make_hyper(2), mode, first, 2)
        return first.discriminator, last, history

    _, alone, alone_history = trained()
    first, off, off_history = trained(anchor=params, reference=reference)
    chex.assert_trees_all_equal(off.discriminator, first)
    chex.assert_trees_all_close(off.params, alone.params, atol=1e-6)
    chex.assert_trees_all_close(off_history, alone_history, atol=1e-6)
    first, paying, history = trained(anchor=params, reference=reference, occupancy_kl=1.0)
    assert not np.allclose(paying.discriminator.params["kernel"], first.params["kernel"])
    assert not np.allclose(history.reward, alone_history.reward, atol=1e-6)


def test_whoever_leaves_gets_less_for_it():
    """On its own steps a policy's log-ratio to another, the positive part of that, and a fitted
    log-ratio of occupancies are positive on average; each is switched on by itself.
    """
    plan = ppo.Plan(8, 8, 16, num_minibatches=2, network=ActorCritic((), (8,)))
    # The last layer begins so small that all policies are nearly the same: here they are not.
    other = jax.tree.map(
        lambda x: x + jax.random.normal(jax.random.key(1), x.shape),
        ppo.start(plan, RULES, jax.random.key(9)).params,
    )
    reference = jnp.zeros((16, RULES.view_size, RULES.view_size), jnp.uint8), jnp.zeros(16, int)

    @jax.jit
    def rewarded(strengths):
        guard = rewards.no_guard(*GOLD, anchor=other, reference=reference).replace(**strengths)
        mode = SEES.replace(reward=SEES.reward.replace(guard=guard))
        state = ppo.start(plan, RULES, jax.random.key(0), mode)
        return ppo.advance(plan, RULES, ppo.make_hyper(2), mode, state, 1)[1].reward[0]

    off = dict.fromkeys(("kl", "excess", "occupancy_kl", "occupancy_chi"), 0.0)
    for name in off:
        assert rewarded({**off, name: 1.0}) < rewarded(off) - 1e-3, name
