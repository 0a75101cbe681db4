"""A region fed by an image: pixels, a spatial layer behind them, and an output frame.

The reference's windowed wiring: a window slides over the image, and every pixel in it reaches the
output at the window's centre; a layer that isn't laid out as an image hears every pixel that some
window covers, with its row and column. A tick has two phases: events run through, then the outputs
are latched and time moves on.

What can't reach an output in the reference is left out: layers that spill over (nothing leads out
of them), the inhibitory bus (never read), topographic weights (never used in propagation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from kubku.grownet import growth, slots
from kubku.grownet.growth import Layer, LayerRule
from kubku.grownet.slots import Neuron, SlotRule

# A pixel has one slot for everything: no bin is beyond an infinite width.
_PIXEL = SlotRule(limit=1, bin_width=(np.inf,))


@dataclass(frozen=True)
class RegionRule:
    """An image region. Static.

    Attributes:
      shape: (rows, columns) of the image and of the output frame.
      layer: the spatial layer behind the pixels.
      kernel: (rows, columns) of a window.
      stride: steps between windows.
      padding: "valid" (windows inside the image) or "same" (half a kernel beyond it).
      gain: factor on pixel values.
      imprint: a pixel's first threshold stands this fraction above its value; below zero, so that
        a pixel fires at once.
      smoothing: share of an output that fades every tick; 0 keeps it until it is overwritten.
    """

    shape: tuple[int, int]
    layer: LayerRule
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: Literal["valid", "same"] = "valid"
    gain: float = 1.0
    imprint: float = -0.01
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not self.layer.slot.spatial:
            raise ValueError("layer.slot.spatial: a layer behind pixels sorts by row and column")


class Region(NamedTuple):
    """A region's state.

    Attributes:
      pixels: memories of the rows * columns pixels, of one slot each.
      layer: the spatial layer.
      output: f32[rows, columns], the latched frame.
    """

    pixels: Neuron
    layer: Layer
    output: Array


def windows(
    shape: tuple[int, int],
    kernel: tuple[int, int],
    stride: tuple[int, int] = (1, 1),
    padding: Literal["valid", "same"] = "valid",
) -> np.ndarray:
    """Which pixel reaches which output.

    Returns:
      bool[rows * columns, rows * columns], from pixel to the centres of the windows over it. The
      reference's count of wires is the number of rows with a True.
    """
    reaches = np.zeros((*shape, *shape), bool)
    pads = [(size - 1) // 2 if padding == "same" else 0 for size in kernel]
    # As in the reference, "same" pads before the image once and behind it twice.
    starts = [
        range(-pad, length + 2 * pad - size + 1, step)
        for length, size, step, pad in zip(shape, kernel, stride, pads, strict=True)
    ]
    for top in starts[0]:
        for left in starts[1]:
            rows = slice(max(top, 0), max(top + kernel[0], 0))
            columns = slice(max(left, 0), max(left + kernel[1], 0))
            row = np.clip(top + kernel[0] // 2, 0, shape[0] - 1)
            column = np.clip(left + kernel[1] // 2, 0, shape[1] - 1)
            reaches[rows, columns, row, column] = True
    return reaches.reshape(shape[0] * shape[1], -1)


def empty(rule: RegionRule) -> Region:
    """A region that has seen nothing."""
    return Region(
        pixels=retina(rule.shape[0] * rule.shape[1]),
        layer=growth.empty(rule.layer),
        output=jnp.zeros(rule.shape),
    )


def retina(size: int) -> Neuron:
    """So many pixels that have seen nothing, of one slot each."""
    pixel = slots.empty(_PIXEL)
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (size, *x.shape)), pixel)


def sense(
    pixels: Neuron,
    values: Array,
    modulation: Array | float,
    margin: Array | float,
    homeostasis: Array | float = slots.HOMEOSTASIS,
) -> tuple[Neuron, Array]:
    """The pixels hear their values, f32[N]; what they become, and bool[N], who fires downstream."""

    def one(pixel: Neuron, value: Array) -> tuple[Neuron, Array]:
        choice = slots.choose(pixel, value[None], _PIXEL)
        return slots.imprint(
            *(pixel, choice, value, value[None], _PIXEL, modulation),
            margin=margin,
            homeostasis=homeostasis,
        )

    pixels, fired = jax.vmap(one)(pixels, values)
    return pixels, fired & (values != 0)


def tick(
    region: Region, image: Array, rule: RegionRule, modulation: Array | float = 1.0
) -> tuple[Region, Array]:
    """Show one image, f32[rows, columns].

    Returns:
      The region a tick later, and bool[rows, columns], the pixels that fired downstream.
    """
    values = rule.gain * image.reshape(-1)
    pixels, fired = sense(region.pixels, values, modulation, rule.imprint)
    reaches = jnp.asarray(windows(rule.shape, rule.kernel, rule.stride, rule.padding))

    def deliver(layer: Layer, event: tuple[Array, Array, Array]):
        value, place, heard = event
        everyone = jnp.broadcast_to(place, (rule.layer.capacity, 2))
        value = jnp.broadcast_to(value, (rule.layer.capacity,))
        layer, _ = growth.present(layer, value, everyone, rule.layer, modulation, heard)
        return layer, None

    # Row by row: slots are created, and neurons born, in the order of the pixels.
    places = jnp.stack(jnp.indices(rule.shape), -1).reshape(-1, 2).astype(jnp.float32)
    layer, _ = lax.scan(deliver, region.layer, (values, places, fired & reaches.any(1)))

    # An output keeps the last value that reached it.
    order = jnp.where(reaches & fired[:, None], jnp.arange(len(values))[:, None], -1).max(0)
    output = jnp.where(order >= 0, values[order], region.output.reshape(-1))
    output = (1.0 - rule.smoothing) * output.reshape(rule.shape)
    return Region(pixels, growth.end_tick(layer), output), fired.reshape(rule.shape)
