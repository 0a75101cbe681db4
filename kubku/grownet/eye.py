"""An eye: pixels with thresholds, windows, and neurons behind them that grow for new patterns.

A frame reaches pixels (`region.sense`). Those that fire send events, with their row and column,
through the windowed wiring to the columns behind: one for the upper window and one for the lower.
A neuron of a column has slots where events of its pattern fell, at ORIGIN places with room for all
of them; it knows a frame by the share of its slots' strength that the events fall into. A frame
that no neuron knows is novel, and while the eye grows a neuron is born for it.

The lower column is gated: each neuron of the upper one has neurons below of its own, as each
entity has facts of its own in `memory`. So what a frame says is two numbers, which pattern above
and which of its patterns below, and they mean nothing but that. Pooling strengths is an extension
of ours, as all answering is.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from kubku.grownet import region, slots
from kubku.grownet.region import windows
from kubku.grownet.slots import Neuron
from kubku.halo import ATTRIBUTES, DARK, FRAME, VALUES, Statement

PIXELS = FRAME[0] * FRAME[1]
GAIN = 2.0
"""Of pixel values: lit ones must lie above 0.8, which the strength of a pixel's slot settles at."""
OPENING = 160
"""Frames that pixels adapt to before they are frozen. Adapting for ever, a pixel ends up firing at
one frame in ten, however often it is lit."""
VIGILANCE = 0.45
"""How much of a pattern must match (a cosine) for its neuron to know a frame."""
STRENGTH = slots.strengths()


class Switches(NamedTuple):
    """Which of GrowNet's ideas are at work: data, so that all ablations share their programs.

    Attributes:
      strength: slots answer with their strength; else with the count of their hits.
      imprint: T0, a threshold starts at the first input; else at 0.
      homeostasis: T2, thresholds adapt to how often they are exceeded; else they stay.
      growth: layers grow; else they keep the neuron that they start with.
      windows: a column hears one window; else the whole frame.
      novelty: doubt is what finds no slot; else it is a check whether something was stated.
    """

    strength: Array | bool = True
    imprint: Array | bool = True
    homeostasis: Array | bool = True
    growth: Array | bool = True
    windows: Array | bool = True
    novelty: Array | bool = True


class Eye(NamedTuple):
    """An eye's state.

    Attributes:
      pixels: Neuron with leading [PIXELS]; when they have grown they are frozen.
      upper: i32[ATTRIBUTES, PIXELS], hits of each neuron's slot at each pixel; 0 where none is.
      lower: i32[ATTRIBUTES, VALUES, PIXELS], likewise, gated by the upper neuron.
    """

    pixels: Neuron
    upper: Array
    lower: Array


class Seen(NamedTuple):
    """What an eye makes of a frame.

    Attributes:
      upper, lower: i32[], the neurons that match best.
      known: bool[], whether both know the frame.
    """

    upper: Array
    lower: Array
    known: Array


def blank() -> Eye:
    """An eye that has seen nothing."""
    upper = jnp.zeros((ATTRIBUTES, PIXELS), jnp.int32)
    lower = jnp.zeros((ATTRIBUTES, VALUES, PIXELS), jnp.int32)
    return Eye(region.retina(PIXELS), upper, lower)


def reaches(switches: Switches) -> Array:
    """Which pixels reach which column, bool[2, PIXELS]: those of the two windows of 4 x 8, or all.

    The centres of the core's windows are the columns.
    """
    halves, whole = (
        wired.T[wired.any(0)]
        for wired in (
            windows(FRAME, kernel, kernel) for kernel in ((FRAME[0] // 2, FRAME[1]), FRAME)
        )
    )
    return jnp.where(switches.windows, halves, np.repeat(whole, 2, 0))


def fires(pixels: Neuron, frames: Array) -> Array:
    """Who fires at a frame, u8[..., *FRAME], when all are frozen: bool[..., PIXELS]."""
    values = _values(frames)
    theta, strength = pixels.theta[:, 0], pixels.strength[:, 0]
    exists = pixels.hits[:, 0] > 0
    return exists & (values != 0) & ((values > theta) | (strength > theta))


def see(eye: Eye, switches: Switches, frame: Array) -> Seen:
    """What the eye makes of a frame, u8[*FRAME]. Changes nothing."""
    return _recognised(eye, switches, fires(eye.pixels, frame))


def grow(eye: Eye, switches: Switches, frames: Array) -> Eye:
    """An eye that has seen `frames`, u8[N, *FRAME], in order.

    Its pixels adapt to `OPENING` of them and are frozen; then the columns grow on all. The first
    thing that the pixels see is the ground: one whose first value was lit would be deaf for long.
    """
    margin = jnp.where(switches.imprint, -0.01, -1.0)
    pace = jnp.where(switches.homeostasis, slots.HOMEOSTASIS, 0.0)

    def hear(pixels: Neuron, values: Array) -> tuple[Neuron, None]:
        return region.sense(pixels, values, 1.0, margin, pace)[0], None

    ground = jnp.full((1, PIXELS), GAIN * DARK)
    heard = jnp.concatenate([ground, _values(frames[:OPENING])])
    pixels, _ = lax.scan(hear, eye.pixels, heard)

    def look(eye: Eye, fired: Array) -> tuple[Eye, None]:
        return _imprinted(eye, switches, fired), None

    eye = eye._replace(pixels=pixels)
    return lax.scan(look, eye, fires(pixels, frames))[0]


def translated(eye: Eye | None, switches: Switches, said: Statement) -> tuple[Statement, Array]:
    """A statement as its patterns' numbers, and bool[], whether it is known; told, it is itself."""
    if eye is None:
        return said, jnp.bool_(True)
    assert said.frame is not None
    seen = see(eye, switches, said.frame)
    return Statement(said.template, said.entity, seen.upper, seen.lower), seen.known


def _values(frames: Array) -> Array:
    grey = jnp.asarray(frames).astype(jnp.float32) / 255
    return GAIN * grey.reshape(*frames.shape[:-2], PIXELS)


def _match(hits: Array, events: Array, strength: Array | bool) -> Array:
    """How well slots match events: cosines f32[N], hits i32[N, PIXELS], events bool[PIXELS]."""
    held = jnp.where(strength, jnp.asarray(STRENGTH)[jnp.minimum(hits, 255)], hits)
    size = jnp.sqrt((held**2).sum(-1) * jnp.maximum(events.sum(), 1))
    return (held @ events.astype(jnp.float32)) / jnp.maximum(size, 1e-9)


def _recognised(eye: Eye, switches: Switches, fired: Array) -> Seen:
    above, below = fired & reaches(switches)
    match = _match(eye.upper, above, switches.strength)
    upper = jnp.argmax(match)
    gated = _match(eye.lower[upper], below, switches.strength)
    known = (match.max() >= VIGILANCE) & (gated.max() >= VIGILANCE)
    return Seen(upper, jnp.argmax(gated), known)


def _imprinted(eye: Eye, switches: Switches, fired: Array) -> Eye:
    """The eye after a frame: who knows it is reinforced; if nobody does, somebody is born."""
    above, below = fired & reaches(switches)
    upper, heard = _hearer(eye.upper, above, switches)
    lower, heard_below = _hearer(eye.lower[upper], below, switches)
    return eye._replace(
        upper=eye.upper.at[upper].add(heard & above),
        lower=eye.lower.at[upper, lower].add(heard & heard_below & below),
    )


def _hearer(hits: Array, events: Array, switches: Switches) -> tuple[Array, Array]:
    """Which of a column's neurons hears events, and whether any does: none without events, nor
    where there is no room for the newborn.
    """
    match = _match(hits, events, switches.strength)
    active = hits.any(-1).sum()
    room = jnp.where(switches.growth, hits.shape[0], 1)
    known = match.max() >= VIGILANCE
    return jnp.where(known, jnp.argmax(match), active), (known | (active < room)) & events.any()
