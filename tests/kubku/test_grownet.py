"""GrowNet's slots and growth: parity with recorded traces of the reference, bounds, freezing."""

import json
from functools import partial
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax

from kubku.grownet import growth, slots
from kubku.grownet.growth import LayerRule
from kubku.grownet.slots import SPATIAL_BINS, SlotRule

TRACES = json.loads((Path(__file__).parents[1] / "data" / "grownet_traces.json").read_text())
present = jax.jit(growth.present, static_argnames="rule")
probe = jax.jit(growth.probe, static_argnames="rule")
CASES = {f"{case['kind']}-{case['seed']}": case for case in TRACES["cases"]}


def rule_of(case: dict) -> LayerRule:
    config = case["config"]
    if case["kind"] == "scalar":
        slot = SlotRule(config["slot_limit"], (config["bin_width_pct"],))
    else:
        widths = (config["row_bin_width_pct"], config["col_bin_width_pct"])
        slot = SlotRule(config["slot_limit"], widths, config["anchor_mode"].lower(), spatial=True)
    return LayerRule(
        slot,
        capacity=config["neuron_limit"],
        initial=config["initial_neurons"],
        patience=config["fallback_growth_threshold"],
        cooldown=config["neuron_growth_cooldown_ticks"],
    )


def replay(events, rule: LayerRule, tick_every: int):
    """As `_replay`, on the host, where looking into arrays compiles nothing."""
    return jax.device_get(_replay(jnp.float32(events), rule, tick_every))


@partial(jax.jit, static_argnames=("rule", "tick_every"))
def _replay(events, rule: LayerRule, tick_every: int):
    """Broadcast f32[T, 1 + D] events (value, place) to a layer; its state, and flags after each."""

    def step(layer, indexed):
        index, event = indexed
        value = jnp.broadcast_to(event[0], (rule.capacity,))
        place = jnp.broadcast_to(event[1:], (rule.capacity, event.size - 1))
        layer, response = growth.present(layer, value, place, rule)
        ticked = growth.end_tick(layer)
        ends = (index + 1) % tick_every == 0
        layer = jax.tree.map(lambda a, b: jnp.where(ends, a, b), ticked, layer)
        return layer, (layer.active, response.fired, layer.neurons.hits > 0)

    return lax.scan(step, growth.empty(rule), (jnp.arange(len(events)), events))


@pytest.mark.parametrize("name", CASES)
def test_parity_with_the_reference(name):
    """Everything discrete agrees exactly; thresholds and averages (float32) to 1e-4."""
    case, rule = CASES[name], rule_of(CASES[name])
    if case["kind"] == "scalar":
        events, tick_every = np.array([[x, x] for x in case["events"]]), 1
    else:
        events = np.array([[value, row, col] for row, col, value in case["events"]])
        tick_every = case["config"]["end_tick_every"]
    layer, (active, fired, exists) = replay(events, rule, tick_every)

    assert active.tolist() == [len(flags) for flags in case["fired"]]
    for t, flags in enumerate(case["fired"]):
        assert "".join(str(int(f)) for f in fired[t, : active[t]]) == flags, f"event {t}"

    final, neurons = case["final"], layer.neurons
    # A neuron creates at most one slot an event, so first appearance gives the order of creation.
    appeared = np.where(exists.any(0), exists.argmax(0), len(events))
    for n, keys in enumerate(final["slot"]):
        order = np.argsort(appeared[n], kind="stable")[: len(keys)]
        assert neurons.used[n] == len(keys)
        found = neurons.key[n, order]
        if rule.slot.spatial:
            assert [list(divmod(key, SPATIAL_BINS)) for key in found.tolist()] == keys
        else:
            assert found.tolist() == keys
        assert neurons.hits[n, order].tolist() == final["hits"][n]
        np.testing.assert_allclose(neurons.theta[n, order], final["theta"][n], rtol=0, atol=1e-4)
        np.testing.assert_allclose(
            neurons.strength[n, order], final["strength"][n], rtol=0, atol=1e-5
        )
        np.testing.assert_allclose(neurons.ema[n, order], final["ema"][n], rtol=0, atol=1e-5)
    assert neurons.used[active[-1] :].sum() == 0


@partial(jax.jit, static_argnames="rule")
def hear(neuron, place, rule, value=1.0, modulation=1.0):
    """One event at a place: the neuron after it, the choice and whether it fired."""
    place = jnp.float32(place)
    choice = slots.choose(neuron, place, rule)
    neuron, fired = slots.imprint(neuron, choice, value, place, rule, modulation)
    return neuron, choice, fired


def test_bins_are_percentages_of_a_first_anchor_that_does_not_move():
    rule = SlotRule(limit=4, bin_width=(10.0,))
    neuron, choice, _ = hear(slots.empty(rule), [10.0], rule)
    assert (int(choice.slot), bool(choice.created), float(neuron.anchor[0])) == (0, True, 10.0)
    # 25% above and 25% below share bin 2: the reference drops the sign.
    for x, created in ((12.5, True), (7.5, False)):
        neuron, choice, _ = hear(neuron, [x], rule)
        assert (int(choice.slot), bool(choice.created)) == (2, created)
    # 70% is bin 7, beyond the last: the anchor's slot takes it while slot 3 does not exist.
    neuron, choice, _ = hear(neuron, [17.0], rule)
    assert (int(choice.slot), bool(choice.fallback)) == (0, True)
    neuron, _, _ = hear(neuron, [13.5], rule)
    neuron, choice, _ = hear(neuron, [17.0], rule)
    assert (int(choice.slot), bool(choice.fallback)) == (3, True)
    assert float(neuron.anchor[0]) == 10.0 and int(neuron.used) == 3


def test_a_slot_is_imprinted_reinforced_and_kept_at_its_rate():
    """Two events of magnitude 0.5 by hand.

    First: theta 0.5 * 1.001 = 0.5005, strength 0.02, silent (0.5 < 0.5005), ema 0,
    theta 0.5005 + 0.01 * (0 - 0.1) = 0.4995. Second: fires (0.5 > 0.4995), ema 0.05,
    theta 0.4995 + 0.01 * (0.05 - 0.1) = 0.499.
    """
    rule = SlotRule()
    neuron, _, fired = hear(slots.empty(rule), [0.5], rule, 0.5)
    assert not fired
    np.testing.assert_allclose(neuron.theta[0], 0.4995, rtol=1e-6)
    neuron, _, fired = hear(neuron, [0.5], rule, 0.5, 1.5)
    assert fired
    expected = (0.499, 0.02 + 0.03, 0.05, 2)
    found = (neuron.theta[0], neuron.strength[0], neuron.ema[0], neuron.hits[0])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_soft_clamp():
    """Identity up to 0.8; at 0.9, half of the band: 1 - 0.2 * (1/8)(10 - 15/2 + 6/4) = 0.9."""
    x = jnp.float32([-3.0, -1.0, -0.9, 0.0, 0.8, 0.9, 1.0, 3.0])
    np.testing.assert_allclose(
        slots.soft_clamp(x), [-1.0, -1.0, -0.9, 0.0, 0.8, 0.9, 1.0, 1.0], atol=1e-6
    )
    dense = slots.soft_clamp(jnp.linspace(-1.2, 1.2, 1001))
    assert jnp.all(jnp.diff(dense) >= 0) and jnp.all(jnp.abs(dense) <= 1)


def test_origin_places_are_absolute_and_a_full_memory_falls_back():
    rule = SlotRule(limit=3, bin_width=(100.0, 100.0), anchor="origin", spatial=True)
    neuron = slots.empty(rule)
    places = [(2, 2), (7, 0), (20, 3), (7, 0), (5, 5)]
    expected = [
        (0, 2 * 16 + 2, True),
        (1, 7 * 16, True),
        (2, 15 * 16 + 3, True),
        (1, 7 * 16, False),
    ]
    for place, (slot, key, created) in zip(places, expected, strict=False):
        neuron, choice, _ = hear(neuron, place, rule)
        assert (int(choice.slot), int(choice.key), bool(choice.created)) == (slot, key, created)
    # Full: the slot of the corner bin (limit - 1, limit - 1), which is (2, 2), takes what is new.
    _, choice, _ = hear(neuron, places[-1], rule)
    assert (int(choice.slot), bool(choice.fallback)) == (0, True)


RULES = [
    LayerRule(SlotRule(1, (5.0,)), capacity=8, initial=1, patience=1, cooldown=2),
    LayerRule(SlotRule(3, (40.0,)), capacity=8, initial=3, patience=2),
    LayerRule(SlotRule(1, (5.0,)), capacity=4, initial=4, patience=1),
    LayerRule(SlotRule(2, (50.0, 50.0), "first", True), capacity=8, initial=2, patience=3),
]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(RULES), st.integers(0, 2**31 - 1))
def test_growth_keeps_its_bounds(rule, seed):
    """Neither neurons nor slots exceed their room or vanish, rows not yet born stay empty, and a
    layer at most doubles in `patience` ticks, because a newborn must be pressed so often itself."""
    values = np.random.default_rng(seed).normal(size=(40, 1 + len(rule.slot.bin_width))) * 5
    layer, (active, _, exists) = replay(values, rule, 1)
    assert np.all(np.diff(active) >= 0)
    assert rule.initial <= active[0] and active[-1] <= rule.capacity
    assert not np.any(exists[:-1] & ~exists[1:])
    assert np.all(exists[-1].sum(-1) == layer.neurons.used)
    assert np.all(layer.neurons.used <= rule.slot.limit)
    assert np.all(layer.neurons.used[active[-1] :] == 0)
    assert np.all(active[rule.patience :] <= 2 * active[: -rule.patience])


def test_a_probe_answers_as_a_frozen_layer_would_and_changes_nothing():
    rule = RULES[1]
    events = np.random.default_rng(0).normal(size=(60, 1)).repeat(2, axis=1) * 3
    layer, (active, _, _) = replay(events, rule, 1)
    assert active[-1] == 8
    frozen = growth.freeze(layer)
    for x in (0.1, 1.0, 7.0):
        value = jnp.full(8, x)
        response = probe(layer, value, value[:, None], rule)
        after, presented = present(frozen, value, value[:, None], rule)
        chex.assert_trees_all_equal(response, presented)
        # Presented for real, a frozen layer keeps every slot it has.
        kept = frozen.neurons.hits > 0
        for field in ("theta", "strength", "ema", "hits", "key"):
            before, now = getattr(frozen.neurons, field), getattr(after.neurons, field)
            np.testing.assert_array_equal(before[kept], now[kept])
    thawed, _ = present(growth.freeze(layer, False), value, value[:, None], rule)
    assert np.any(thawed.neurons.hits != layer.neurons.hits)


def test_an_event_reaches_only_the_neurons_that_it_drives():
    rule = LayerRule(SlotRule(), capacity=4, initial=3)
    driven = jnp.array([True, False, True, True])
    value = jnp.float32([0.5, 0.5, 0.5, 0.5])
    layer, response = growth.present(growth.empty(rule), value, value[:, None], rule, driven=driven)
    assert layer.neurons.used.tolist() == [1, 0, 1, 0]  # the last is not born yet
    assert not np.any(response.familiar)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SlotRule(limit=0), "limit=0"),
        (lambda: SlotRule(bin_width=(10.0, 10.0)), "bin_width"),
        (lambda: LayerRule(capacity=4, initial=5), "initial=5"),
        (lambda: LayerRule(patience=0), "patience=0"),
    ],
)
def test_impossible_rules_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
