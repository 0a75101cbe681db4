"""Windowed wiring and image ticks, against a slow simulation that walks neurons one by one."""

from functools import partial

import jax
import numpy as np
import pytest

from kubku.grownet import region
from kubku.grownet.growth import LayerRule
from kubku.grownet.region import RegionRule
from kubku.grownet.slots import SPATIAL_BINS, SlotRule


def test_every_pixel_of_a_window_reaches_its_centre():
    """A 2x2 kernel at stride 2 on 4x4: four windows, no overlap, centres at odd rows and columns.

    Top 0, kernel 2: centre row 0 + 2 // 2 = 1; top 2: 3.
    """
    reaches = region.windows((4, 4), (2, 2), (2, 2)).reshape(4, 4, 4, 4)
    for row in range(4):
        for column in range(4):
            centre = (row // 2 * 2 + 1, column // 2 * 2 + 1)
            assert np.argwhere(reaches[row, column]).tolist() == [list(centre)]


def test_wires_and_overlap():
    """3x3 on 4x4, stride 1, valid: windows at (0..1, 0..1), and every pixel is in one at least.

    Pixel (0, 0) is in the first alone, centre (1, 1); pixel (1, 1) is in all four.
    """
    reaches = region.windows((4, 4), (3, 3))
    assert reaches.any(1).sum() == 16
    assert np.argwhere(reaches[0]).ravel().tolist() == [1 * 4 + 1]
    assert np.argwhere(reaches[5]).ravel().tolist() == [5, 6, 9, 10]
    # Stride 3 leaves the last row and column outside of every window.
    assert region.windows((4, 4), (3, 3), (3, 3)).any(1).sum() == 9
    # Padded, centres reach the border: pixel (0, 0) lies under the window centred on itself.
    assert region.windows((4, 4), (3, 3), padding="same")[0, 0]


class SlowRegion:
    """The same rules with dictionaries: pixels fire downstream in row-major order at once."""

    def __init__(self, rule: RegionRule):
        self.rule, self.step = rule, 0
        self.pixels = {}
        self.neurons = [self.neuron() for _ in range(rule.layer.initial)]
        self.output = np.zeros(rule.shape)

    @staticmethod
    def neuron():
        return {"slots": {}, "anchor": None, "streak": 0, "bred": -1}

    @staticmethod
    def weight(slot, value, margin):
        if slot["hits"] == 0:
            slot["theta"] = abs(value) * (1 + margin)
        slot["strength"] += 0.02
        slot["hits"] += 1
        fired = abs(value) > slot["theta"] or slot["strength"] > slot["theta"]
        slot["ema"] = 0.95 * slot["ema"] + 0.05 * fired
        slot["theta"] += 0.01 * (slot["ema"] - 0.1)
        return fired

    def tick(self, image):
        reaches = region.windows(self.rule.shape, self.rule.kernel, self.rule.stride)
        reaches = reaches.reshape(*self.rule.shape, *self.rule.shape)
        for place in np.ndindex(*self.rule.shape):
            blank = {"theta": 0.0, "strength": 0.0, "ema": 0.0, "hits": 0}
            pixel = self.pixels.setdefault(place, blank)
            fired = self.weight(pixel, image[place], self.rule.imprint)
            if fired and image[place] != 0 and reaches[place].any():
                self.output[reaches[place]] = image[place]
                for neuron in self.neurons:  # walks over those born on the way, too
                    self.hear(neuron, image[place], place)
        self.output *= 1 - self.rule.smoothing
        self.step += 1

    def hear(self, neuron, value, place):
        limit = self.rule.layer.slot.limit
        anchor = neuron["anchor"] = neuron["anchor"] or place
        widths = self.rule.layer.slot.bin_width
        key = tuple(
            min(int(100 * abs(x - a) / max(abs(a), 1) // width), SPATIAL_BINS - 1)
            for x, a, width in zip(place, anchor, widths, strict=True)
        )
        slots = neuron["slots"]
        fallback = key not in slots and len(slots) >= limit
        if fallback:
            corner = (limit - 1, limit - 1)
            key = corner if corner in slots else next(iter(slots))
        blank = {"theta": 0.0, "strength": 0.0, "ema": 0.0, "hits": 0}
        self.weight(slots.setdefault(key, blank), value, 1e-3)
        neuron["streak"] = neuron["streak"] + 1 if fallback else 0
        if neuron["streak"] >= self.rule.layer.patience:
            neuron["streak"] = 0
            if self.step - neuron["bred"] >= self.rule.layer.cooldown:
                neuron["bred"] = self.step
                if len(self.neurons) < self.rule.layer.capacity:
                    self.neurons.append(self.neuron())


def test_image_ticks_against_a_slow_simulation():
    layer = LayerRule(
        SlotRule(3, (50.0, 50.0), spatial=True), capacity=6, initial=2, patience=2, cooldown=1
    )
    rule = RegionRule((4, 5), layer, kernel=(2, 3), stride=(1, 2), smoothing=0.25)
    slow, fast = SlowRegion(rule), region.empty(rule)
    tick = jax.jit(partial(region.tick, rule=rule))
    images = np.random.default_rng(0).uniform(0.1, 1, (8, 4, 5)).astype(np.float32)
    images *= np.random.default_rng(1).random((8, 4, 5)) < 0.7
    for image in images:
        slow.tick(image)
        fast, _ = tick(fast, image)
        np.testing.assert_allclose(fast.output, slow.output, rtol=1e-5)
        assert int(fast.layer.active) == len(slow.neurons)
    neurons = jax.device_get(fast.layer.neurons)
    assert len(slow.neurons) > layer.initial
    for n, neuron in enumerate(slow.neurons):
        used = neurons.used[n]
        keys = [divmod(key, SPATIAL_BINS) for key in neurons.key[n, :used].tolist()]
        assert keys == list(neuron["slots"])
        for field in ("theta", "strength", "ema", "hits"):
            expected = np.array([slot[field] for slot in neuron["slots"].values()])
            found = getattr(neurons, field)[n, :used]
            hard = neurons.strength[n, :used] < 0.8  # the simulation has no soft clamp
            assert hard.any()
            np.testing.assert_allclose(found[hard], expected[hard], atol=1e-5)


def test_a_layer_behind_pixels_must_be_spatial():
    with pytest.raises(ValueError, match="spatial"):
        RegionRule((4, 4), LayerRule())
