"""One neuron's memory: slots around an anchor, each with a strength and a threshold that adapts.

The rules are those of the public GrowNet reference (github.com/nectario/grownet, Python, commit
a196db1), re-expressed as pure functions over arrays of a fixed capacity. Everything here is for
one neuron and one event; `growth.present` maps it over a layer.

A slot exists where `hits > 0`: the event that creates a slot is also its first reinforcement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

# Constants of the reference, hard-coded there as well.
STEP = 0.02  # strength gained by a hit at modulation 1
MAX_HITS = 10_000  # a slot hit so often is no longer reinforced
SOFT = 0.2  # width of the band in which strength eases into -1 or 1
EMA_RATE = 0.05  # weight of the newest tick in a slot's firing rate
HOMEOSTASIS = 0.01  # threshold change per unit of excess firing rate
TARGET_RATE = 0.1  # firing rate that the threshold settles at
IMPRINT = 1e-3  # fraction by which a new slot's threshold exceeds its first input
SPATIAL_BINS = 16  # 2-D bins beyond the last are clamped to it, whatever the slot limit


@dataclass(frozen=True)
class SlotRule:
    """How events are sorted into slots. Static: it shapes the arrays and the program.

    Attributes:
      limit: slots a neuron can hold (S).
      bin_width: percent of the anchor's magnitude that one bin spans, per axis.
      anchor: "first" (a neuron's first event, which then never moves) or "origin" (zero).
      spatial: an event's place is (row, column) rather than its own value.
    """

    limit: int = 16
    bin_width: tuple[float, ...] = (10.0,)
    anchor: Literal["first", "origin"] = "first"
    spatial: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise ValueError(f"limit={self.limit}: a neuron needs at least one slot")
        axes = 2 if self.spatial else 1
        if len(self.bin_width) != axes or min(self.bin_width) < 0.1:
            raise ValueError(f"bin_width={self.bin_width}: give {axes}, each at least 0.1 percent")

    @property
    def epsilon(self) -> float:
        """Smallest magnitude that a bin is a percentage of."""
        return 1.0 if self.spatial else 1e-6


class Neuron(NamedTuple):
    """Memory of one neuron; a layer's arrays have a leading [N].

    Attributes:
      anchor: f32[D], the place that bins are counted from (D=1 scalar, 2 spatial).
      used: i32[], number of slots that exist.
      key: i32[S], the bin that a slot stands for. A scalar slot's is its index; spatial slots lie
        in the order of creation, with keys row_bin * SPATIAL_BINS + column_bin, -1 where none is.
      theta: f32[S], firing thresholds.
      strength: f32[S], soft-clamped to (-1, 1); with modulation 1 it settles at 0.802.
      ema: f32[S], exponential moving average of firing, 0 to 1.
      hits: i32[S], reinforcements so far; 0 where no slot exists.
      frozen: bool[S], slots that neither learn nor adapt.
    """

    anchor: Array
    used: Array
    key: Array
    theta: Array
    strength: Array
    ema: Array
    hits: Array
    frozen: Array


class Choice(NamedTuple):
    """The slot that an event falls into.

    Attributes:
      slot: i32[], index of the slot.
      key: i32[], the bin that this slot stands for.
      created: bool[], whether the event is the slot's first.
      fallback: bool[], whether the event's own bin was out of reach (beyond the last bin, or no
        room left), so that another bin's slot took it.
    """

    slot: Array
    key: Array
    created: Array
    fallback: Array

    @property
    def familiar(self) -> Array:
        """bool[], whether the event's own bin has been seen before."""
        return ~(self.created | self.fallback)


def empty(rule: SlotRule) -> Neuron:
    """A neuron that has seen nothing."""
    size = (rule.limit,)
    return Neuron(
        anchor=jnp.zeros(len(rule.bin_width)),
        used=jnp.int32(0),
        key=jnp.full(size, -1, jnp.int32) if rule.spatial else jnp.arange(rule.limit),
        theta=jnp.zeros(size),
        strength=jnp.zeros(size),
        ema=jnp.zeros(size),
        hits=jnp.zeros(size, jnp.int32),
        frozen=jnp.zeros(size, bool),
    )


def anchored(neuron: Neuron, place: Array, rule: SlotRule) -> Array:
    """f32[D], the anchor that an event at `place` (f32[D]) is measured from."""
    if rule.anchor == "origin":
        return jnp.zeros_like(neuron.anchor)
    return jnp.where(neuron.used > 0, neuron.anchor, place)


def choose(neuron: Neuron, place: Array, rule: SlotRule) -> Choice:
    """Sort an event at `place` (f32[D]) into a slot. Reads only."""
    anchor = anchored(neuron, place, rule)
    percent = 100.0 * jnp.abs(place - anchor) / jnp.maximum(jnp.abs(anchor), rule.epsilon)
    bins = jnp.floor(percent / jnp.asarray(rule.bin_width))
    return (_choose_spatial if rule.spatial else _choose_scalar)(neuron, bins, rule.limit)


def _choose_scalar(neuron: Neuron, bins: Array, limit: int) -> Choice:
    """Bins 0..limit-1 are all the keys there can be, so a bin is its own index, always with room.

    Beyond them the last slot takes the event if it exists, else the first, which is the anchor's.
    """
    wanted = jnp.minimum(bins[0], limit).astype(jnp.int32)
    fallback = wanted == limit
    last = jnp.where(neuron.hits[limit - 1] > 0, limit - 1, 0)
    slot = jnp.where(fallback, last, wanted)
    return Choice(slot, slot, ~fallback & (neuron.hits[slot] == 0), fallback)


def _choose_spatial(neuron: Neuron, bins: Array, limit: int) -> Choice:
    row, column = jnp.minimum(bins, SPATIAL_BINS - 1).astype(jnp.int32)
    wanted = row * SPATIAL_BINS + column
    corner = (limit - 1) * SPATIAL_BINS + (limit - 1)
    # One reduction instead of three: the bin's own slot outranks that of the corner, to which a
    # full neuron falls back; without a corner the reference turns to the first slot.
    index, there = jnp.arange(limit), jnp.where(neuron.key == corner, 0, -limit)
    rank = jnp.max(index + jnp.where(neuron.key == wanted, limit, there))
    known, full = rank >= limit, neuron.used >= limit
    slot = jnp.where(known, rank - limit, jnp.where(full, jnp.maximum(rank, 0), neuron.used))
    created, fallback = ~known & ~full, ~known & full
    return Choice(slot, jnp.where(fallback, neuron.key[slot], wanted), created, fallback)


def imprint(
    neuron: Neuron,
    choice: Choice,
    value: Array,
    place: Array,
    rule: SlotRule,
    modulation: Array | float,
    heard: Array | bool = True,
    margin: Array | float = IMPRINT,
    homeostasis: Array | float = HOMEOSTASIS,
) -> tuple[Neuron, Array]:
    """Learn from one event: reinforce the chosen slot, adapt its threshold, decide whether to fire.

    Args:
      neuron: the memory before the event.
      choice: what `choose` returned for this event.
      value: f32[], the event's magnitude.
      place: f32[D], where it fell.
      rule: how events are sorted.
      modulation: factor on the strength that this event adds.
      heard: bool[]; False leaves the neuron as it was, silent.
      margin: a new slot's threshold stands this fraction above its first input.
      homeostasis: threshold change per unit of excess firing rate.

    Returns:
      The memory after it, and bool[], whether the neuron fires.
    """
    slot, learns = choice.slot, heard & ~neuron.frozen[choice.slot]
    hits, ema = neuron.hits[slot], neuron.ema[slot]
    strength, theta = neuron.strength[slot], neuron.theta[slot]

    grows = learns & (hits < MAX_HITS)
    strength = jnp.where(grows, soft_clamp(strength + STEP * modulation), strength)
    theta = jnp.where(learns & (hits == 0), jnp.abs(value) * (1.0 + margin), theta)
    fired = heard & ((jnp.abs(value) > theta) | (strength > theta))
    ema = jnp.where(learns, (1.0 - EMA_RATE) * ema + EMA_RATE * fired, ema)
    theta = jnp.where(learns, theta + homeostasis * (ema - TARGET_RATE), theta)

    key = neuron.key
    if rule.spatial:
        key = key.at[slot].set(jnp.where(heard, choice.key, key[slot]))
    learned = neuron._replace(
        anchor=jnp.where(heard, anchored(neuron, place, rule), neuron.anchor),
        used=neuron.used + (heard & choice.created),
        key=key,
        theta=neuron.theta.at[slot].set(theta),
        strength=neuron.strength.at[slot].set(strength),
        ema=neuron.ema.at[slot].set(ema),
        hits=neuron.hits.at[slot].add(grows),
    )
    return learned, fired


def strengths() -> np.ndarray:
    """A slot's strength by its hits at modulation 1, f32[256]; the last holds for all after."""
    found = [0.0]
    while len(found) < 256:
        x = found[-1] + STEP
        t = np.clip((1.0 - x) / SOFT, 0.0, 1.0)
        found.append(1.0 - SOFT * t**3 * (10 - 15 * t + 6 * t**2) if x > 1.0 - SOFT else x)
    return np.array(found, np.float32)


def soft_clamp(x: Array) -> Array:
    """Clamp to [-1, 1], easing into the bounds over SOFT by the quintic t^3 (10 - 15 t + 6 t^2)."""
    t = jnp.clip((1.0 - jnp.abs(x)) / SOFT, 0.0, 1.0)
    eased = jnp.sign(x) * (1.0 - SOFT * t**3 * (10.0 - 15.0 * t + 6.0 * t**2))
    return jnp.where(jnp.abs(x) > 1.0 - SOFT, eased, x)
