"""GrowNet's slots and growth: parity with recorded traces of the reference, bounds, freezing."""

import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from kubku.grownet import growth, slots
from kubku.grownet.growth import LayerRule
from kubku.grownet.slots import SPATIAL_BINS, SlotRule

TRACES = json.loads((Path(__file__).parents[1] / "data" / "grownet_traces.json").read_text())
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


@partial(jax.jit, static_argnames=("rule", "tick_every"))
def replay(events, rule: LayerRule, tick_every: int):
    """Broadcast `f32[T, 1 + D]` events (value, place) to a layer; its state and flags after each."""

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
    layer, (active, fired, exists) = replay(jnp.float32(events), rule, tick_every)

    assert active.tolist() == [len(flags) for flags in case["fired"]]
    for t, flags in enumerate(case["fired"]):
        assert "".join(str(int(f)) for f in fired[t, : active[t]]) == flags, f"event {t}"

    final, neurons = case["final"], jax.device_get(layer.neurons)
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
        np.testing.assert_allclose(neurons.strength[n, order], final["strength"][n], rtol=0, atol=1e-5)
        np.testing.assert_allclose(neurons.ema[n, order], final["ema"][n], rtol=0, atol=1e-5)
    assert neurons.used[active[-1] :].sum() == 0
