"""Directional accuracy by hand, plateaus on synthetic curves, floors and equal configurations."""

from itertools import zip_longest
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from goodharts_jax import seekers, study, verification
from goodharts_jax.modes import make_mode
from goodharts_jax.networks import ActorCritic
from goodharts_jax.networks import policy as network_policy
from goodharts_jax.policies import Output
from goodharts_jax.results import ModeResults, RunResults, Training
from goodharts_jax.world import FOOD, MOVES, POISON

RADIUS = 5

# ---- directions ---------------------------------------------------------------------------------


def test_views_hold_one_item_where_they_say():
    views = verification.directional_views(POISON, RADIUS)
    assert views.shape == (8, RADIUS, 11, 11)
    assert ((views == POISON).sum(axis=(2, 3)) == 1).all()
    assert (views[:, :, RADIUS, RADIUS] == 0).all()
    # Direction 5 is (1, -1): three steps away lies three columns east, three rows north.
    assert views[5, 2, RADIUS - 3, RADIUS + 3] == POISON


def test_chance_by_hand():
    chance = verification.directional_accuracy(seekers.random_walk, RADIUS)
    expected = np.full((8, RADIUS), 1 / 8)
    for direction, (dx, dy) in enumerate(MOVES):
        if dx == 0 or dy == 0:
            # Along an axis, beyond the first step, the two slanting moves come nearer too.
            expected[direction, 1:] = 3 / 8
    np.testing.assert_allclose(chance.chance, expected)
    np.testing.assert_allclose(chance.approach_food, expected, rtol=1e-6)
    np.testing.assert_allclose(chance.approach_poison, expected, rtol=1e-6)
    assert float(chance.food_accuracy) == pytest.approx(expected.mean())
    assert float(chance.poison_accuracy) == pytest.approx(1 - expected.mean())


def test_seekers_score_what_they_are():
    omniscient = verification.directional_accuracy(seekers.omniscient_seeker, RADIUS)
    assert float(omniscient.food_accuracy) == 1.0
    np.testing.assert_allclose(omniscient.approach_food, 1.0)
    # It steps round poison next to it; farther off, its course may lead the same way.
    np.testing.assert_allclose(omniscient.approach_poison[:, 0], 0.0)
    collector = verification.directional_accuracy(seekers.seeker(0.5, 1.0), RADIUS)
    assert float(collector.food_accuracy) == 1.0
    assert float(collector.poison_accuracy) == 0.0
    avoider = verification.directional_accuracy(seekers.avoider, RADIUS)
    np.testing.assert_allclose(avoider.approach_food[:, 0], 0.0)


def test_a_mirrored_policy_is_caught():
    """A policy whose view has rows and columns exchanged fails, though it seeks food."""

    def transposed(view: jax.Array, noise_word: jax.Array) -> Output:
        return seekers.omniscient_seeker(view.T, noise_word)

    result = verification.directional_accuracy(transposed, RADIUS)
    # It is right on the diagonals (-1, -1) and (1, 1), and by one of its three moves along an axis.
    np.testing.assert_allclose(result.approach_food[jnp.array([0, 7])], 1.0)
    assert float(result.food_accuracy) == pytest.approx(2 / 8 + 4 / 8 * 4 / 5 * 1 / 3)


def test_probabilities_are_softmax_of_logits():
    favour = jnp.log(jnp.array([3.0, 1, 1, 1, 1, 1, 1, 1]))
    result = verification.directional_accuracy(lambda view, word: Output(favour, jnp.nan), RADIUS)
    np.testing.assert_allclose(result.approach_food[0], 0.3, rtol=1e-6)
    np.testing.assert_allclose(result.approach_food[7], 0.1, rtol=1e-6)


def test_each_mode_is_checked_by_its_own_policies():
    network, same = ActorCritic(hidden=(8,)), make_mode((1, 0), (0, 1), 1, -2)

    def runs(seed: int) -> tuple:
        # Biases that are drawn too, or a policy just made hardly prefers one move to another.
        params = network.init(jax.random.key(seed), jnp.zeros((5, 5, 2)))
        draw = np.random.default_rng(seed)
        return jax.tree.map(lambda x: jnp.asarray(draw.normal(size=(2, *x.shape))), params), same

    policies = {"ground_truth": runs(0), "proxy": runs(1)}
    shown = verification.directions(network, policies, 2)
    for name, (params, seen) in policies.items():
        alone = [
            verification.directional_accuracy(
                network_policy(network, jax.tree.map(lambda x, i=i: x[i], params), seen), 2
            )
            for i in range(2)
        ]
        for part, found in shown[name]:
            mean = np.mean([getattr(one, part) for one in alone], axis=0)
            np.testing.assert_allclose(found, mean, atol=1e-5, err_msg=part)
    assert shown["ground_truth"] != shown["proxy"]

    modes = {
        "ground_truth": mode([90, 92, 94], [True, True, True]),
        "proxy": mode([9, 10, 11], [True, False, True]),
        "random_walk": mode([9.9, 10.1, 10.0], scripted=True),
    }
    checked = verification.verify(modes, shown)
    assert {name: check.directions for name, check in checked.items()} == shown
    assert checked["ground_truth"].converged and not checked["proxy"].converged
    assert checked["ground_truth"].survival_floor.above is True
    assert checked["proxy"].survival_floor.above is False


def test_a_study_asks_the_policies_of_each_mode_and_the_first_of_all(monkeypatch):
    asked = {}
    monkeypatch.setattr(verification, "directions", lambda _, policies, __: asked.update(policies))
    monkeypatch.setattr(verification, "policy_agreement", lambda _, *first: first)
    monkeypatch.setattr(study, "_record", lambda *_: {})
    plan, small = SimpleNamespace(network=None), SimpleNamespace(view_radius=2)
    rows = {"ground_truth": "truly", "proxy": "by proxy"}
    about = SimpleNamespace(
        rows=rows,
        own=lambda name: slice(0, 2) if name == "ground_truth" else slice(2, 4),
        settings=SimpleNamespace(plan=plan, world=small),
    )
    trained = SimpleNamespace(states=SimpleNamespace(params=np.arange(4)))
    _, _, first = study._alone(about, trained)
    assert {name: (*params, mode) for name, (params, mode) in asked.items()} == {
        "ground_truth": (0, 1, "truly"),
        "proxy": (2, 3, "by proxy"),
    }
    assert first == (0, "truly", 2)


# ---- convergence --------------------------------------------------------------------------------

X = np.linspace(0, 1, 200)
NOISE = np.random.default_rng(0).normal(0, 1, 200)


@pytest.mark.parametrize(
    ("curve", "converged"),
    [
        (1 - np.exp(-8 * X), True),  # a plateau
        (1 - np.exp(-8 * X) + 0.02 * NOISE, True),
        (10 * np.exp(-8 * X) + 0.5, True),  # a loss that has levelled off
        (X, False),  # still rising, 11% between the last tenths
        (np.exp(-3 * X), False),  # still falling, 26%
        (1 - 2 * (X > 0.95), False),  # collapsed at the end
        (-1 + 2 * (1 - np.exp(-8 * X)), True),  # crosses zero, then level
        (X - 0.95, False),  # crosses zero at the end: relative to the range, not to nothing
        (np.zeros(200), True),
        (np.where(X > 0.95, 1.0, 0.0), False),
        (np.ones(19), False),  # too short to tell
        (np.where(X < 0.3, np.nan, 1.0), True),  # undefined at first
        (np.full(200, np.nan), False),
    ],
)
def test_convergence_of_synthetic_curves(curve, converged):
    assert verification.convergence({"return": curve}).converged is converged


def test_every_curve_must_level_off():
    level, rising = np.ones(100), np.linspace(0, 1, 100)
    result = verification.convergence({"return": level, "value_loss": rising})
    assert not result.converged
    assert result.changes["return"] == 0.0
    # Tenths of a line from 0 to 1 have means 0.95 and 0.85, nearly.
    assert result.changes["value_loss"] == pytest.approx(0.1 / 0.85, rel=0.01)
    assert verification.convergence({"return": level}).converged
    assert not verification.convergence({}).converged


# ---- floor --------------------------------------------------------------------------------------


def mode(
    survival: list[float], converged: list[bool] | None = None, *, scripted: bool = False
) -> ModeResults:
    """A mode of which no more is known."""
    training = [Training.model_construct(converged=each) for each in converged or []]
    runs = tuple(
        RunResults.model_construct(survival_restricted_mean=one, training=own)
        for one, own in zip_longest(survival, training)
    )
    return ModeResults.model_construct(scripted=scripted, runs=runs)


def test_survival_floor():
    modes = {
        "ground_truth": mode([90, 92, 94]),
        "proxy": mode([9, 10, 11]),
        "close": mode([9, 13, 17]),
        "once": mode([90]),
        "random_walk": mode([9.9, 10.1, 10.0], scripted=True),
        "avoider": mode([10.5, 10.5, 10.5], scripted=True),
        "omniscient_seeker": mode([100, 101, 102], scripted=True),
    }
    floor = verification.survival_floor(modes)
    assert list(floor) == ["ground_truth", "proxy", "close", "once"]
    assert {name: check.above for name, check in floor.items()} == {
        "ground_truth": True,
        "proxy": False,
        "close": False,
        "once": None,
    }
    assert floor["proxy"].floor == pytest.approx(10.5)
    assert floor["proxy"].script == "avoider"
    alone = verification.survival_floor({"proxy": mode([1, 2, 3])})
    assert alone["proxy"].above is None and alone["proxy"].floor is None


# ---- configurations -----------------------------------------------------------------------------


def test_equal_configurations_pass():
    base = {"world": {"size": 100, "move_cost": 0.1}, "ppo": {"epochs": 4}}
    verification.require_same_configuration(
        {
            "a": base | {"mode": "proxy", "seed": 42, "modes": {"proxy": {"pay": [0, 1]}}},
            "b": base | {"mode": "ground_truth", "seed": 43, "modes": {}},
        }
    )


def test_a_difference_is_named_with_its_values():
    with pytest.raises(ValueError) as error:
        verification.require_same_configuration(
            {
                "proxy": {"world": {"move_cost": 0.1, "size": 100}, "seed": 1},
                "truth": {"world": {"move_cost": 0.01, "size": 100}, "ppo": {"epochs": 4}},
            }
        )
    assert str(error.value) == (
        "not made under the same conditions: "
        "world.move_cost: 0.1 in proxy, 0.01 in truth; "
        "ppo.epochs: 'not set' in proxy, 4 in truth"
    )


def test_a_setting_that_only_begins_alike_is_not_free():
    with pytest.raises(ValueError, match="seeds_per_mode"):
        verification.require_same_configuration(
            {"a": {"seeds_per_mode": 1}, "b": {"seeds_per_mode": 2}}, may_differ=("seeds",)
        )


def test_food_and_poison_are_shown_apart():
    def only_food(view: jax.Array, noise_word: jax.Array) -> Output:
        logits, value = seekers.omniscient_seeker(view, noise_word)
        return Output(jnp.where(jnp.any(view == FOOD), 1.0, 0.0) * logits, value)

    result = verification.directional_accuracy(only_food, RADIUS)
    assert float(result.food_accuracy) == 1.0
    np.testing.assert_allclose(result.approach_poison, result.chance, rtol=1e-6)


def entry(seed, steps=1000, trained=500):
    training = None if trained is None else Training.model_construct(steps=trained)
    return RunResults.model_construct(seed=seed, total_steps=steps, training=training)


def studied(*runs, scripted=False):
    return ModeResults.model_construct(scripted=scripted, runs=runs)


def test_modes_of_a_study_must_be_trained_and_judged_alike():
    alike = {
        "proxy": studied(entry(1), entry(2)),
        "truth": studied(entry(1), entry(2)),
        "walk": studied(entry(1, trained=None), scripted=True),
    }
    verification.require_same_conditions(alike)
    verification.require_same_conditions(alike | {"more": studied(entry(1), entry(2), entry(3))})
    # A run may be trained for longer: until it is level.
    verification.require_same_conditions(
        alike | {"truth": studied(entry(1), entry(2, trained=400))}
    )
    for other, named in (
        ([entry(1), entry(3)], "seeds"),
        ([entry(1), entry(2, steps=999)], "evaluated steps"),
    ):
        with pytest.raises(ValueError, match=f"same conditions: {named}: .* in proxy"):
            verification.require_same_conditions(alike | {"truth": studied(*other)})


# ---- devices ------------------------------------------------------------------------------------


def test_one_device_agrees_with_nobody():
    found = verification.device_agreement(jnp.sin, jnp.arange(3.0))
    assert found.agree is None and found.largest_difference is None
    assert found.devices == ("cpu:0",)


def test_devices_that_differ_are_told(monkeypatch):
    """Two devices that are one in truth, of which the second computes something else."""
    cpu = jax.devices()[0]
    answers = iter([np.zeros(3), np.array([0, 2e-4, 0])])
    monkeypatch.setattr(verification, "_devices", lambda: [cpu, cpu])
    monkeypatch.setattr(jax, "jit", lambda function: lambda *arguments: next(answers))
    found = verification.device_agreement(jnp.sin, jnp.arange(3.0))
    assert found.largest_difference == pytest.approx(2e-4) and found.agree is False
