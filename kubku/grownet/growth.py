"""A layer of neurons that grows: one more neuron where events keep falling outside full memories.

Capacity is allocated once; growing activates the next row. The reference visits its neurons in
order and appends newborns to the list that it is walking, so that a newborn hears, in the same
tick, the event that it was born of, and anchors on it. A newborn's first event never falls back,
so it cannot breed in that tick, and the walk has a closed form: choose everywhere, count births,
write.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from kubku.grownet import slots
from kubku.grownet.slots import Neuron, SlotRule


@dataclass(frozen=True)
class LayerRule:
    """How a layer listens and grows. Static.

    Attributes:
      slot: how a neuron sorts events.
      capacity: neurons that the layer can hold (N).
      initial: neurons that it starts with; equal to capacity, it never grows.
      patience: consecutive events without a slot of their own that make a full neuron breed
        (`fallback_growth_threshold` in the reference).
      cooldown: ticks between two births by the same neuron.
    """

    slot: SlotRule = field(default_factory=SlotRule)
    capacity: int = 64
    initial: int = 1
    patience: int = 3
    cooldown: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.initial <= self.capacity:
            raise ValueError(f"initial={self.initial}: from 1 to capacity={self.capacity}")
        if self.patience < 1:
            raise ValueError(f"patience={self.patience}: at least 1")


class Layer(NamedTuple):
    """A layer's state.

    Attributes:
      neurons: memories, each array with a leading [N].
      active: i32[], rows in use; the others are empty and deaf.
      streak: i32[N], consecutive events without a slot of their own.
      bred_at: i32[N], tick at which a neuron last bred, -1 for never.
      tick: i32[], the current tick.
    """

    neurons: Neuron
    active: Array
    streak: Array
    bred_at: Array
    tick: Array


class Response(NamedTuple):
    """What the neurons make of an event.

    Attributes:
      fired: bool[N].
      slot: i32[N], the slot that the event fell into.
      familiar: bool[N], whether its own bin had been seen before.
      landed: bool[N], whether its own bin has a slot now; no fallback.
    """

    fired: Array
    slot: Array
    familiar: Array
    landed: Array


def empty(rule: LayerRule) -> Layer:
    """A layer that has seen nothing."""
    rows = (rule.capacity,)
    neuron = slots.empty(rule.slot)
    return Layer(
        neurons=jax.tree.map(lambda x: jnp.broadcast_to(x, rows + x.shape), neuron),
        active=jnp.int32(rule.initial),
        streak=jnp.zeros(rows, jnp.int32),
        bred_at=jnp.full(rows, -1, jnp.int32),
        tick=jnp.int32(0),
    )


def present(
    layer: Layer,
    value: Array,
    place: Array,
    rule: LayerRule,
    modulation: Array | float = 1.0,
    driven: Array | bool = True,
) -> tuple[Layer, Response]:
    """Present one event to every active neuron, and let the layer grow.

    Args:
      layer: state before the event.
      value: f32[N], the magnitude that reaches each neuron.
      place: f32[N, D], where it falls; in scalar layers `value[:, None]`.
      rule: the layer's rule.
      modulation: factor on the strength that this event adds.
      driven: bool[N], neurons that the event reaches; a newborn outside it stays empty.

    Returns:
      State after it (the same tick: see `end_tick`), and the response, newborns included.
    """
    rows = jnp.arange(rule.capacity)
    choice = jax.vmap(slots.choose, (0, 0, None))(layer.neurons, place, rule.slot)

    pressed = choice.fallback & (layer.neurons.used >= rule.slot.limit)
    pressed &= driven & (rows < layer.active)
    streak = jnp.where(pressed, layer.streak + 1, jnp.where(driven, 0, layer.streak))
    impatient = streak >= rule.patience
    breeds = impatient & (layer.tick - layer.bred_at >= rule.cooldown)
    active = jnp.minimum(layer.active + jnp.sum(breeds), rule.capacity)

    heard = driven & (rows < active)
    neurons, fired = jax.vmap(slots.imprint, (0, 0, 0, 0, None, None, 0))(
        layer.neurons, choice, value, place, rule.slot, modulation, heard
    )
    grown = Layer(
        neurons=neurons,
        active=active,
        streak=jnp.where(impatient, 0, streak),
        # Asking counts even where the layer is full, as in the reference.
        bred_at=jnp.where(breeds, layer.tick, layer.bred_at),
        tick=layer.tick,
    )
    landed = heard & ~choice.fallback
    return grown, Response(fired, choice.slot, landed & ~choice.created, landed)


def probe(layer: Layer, value: Array, place: Array, rule: LayerRule) -> Response:
    """What `present` would answer if every slot were frozen and nothing grew. Changes nothing.

    Args:
      layer, value, place, rule: as in `present`.
    """
    choice = jax.vmap(slots.choose, (0, 0, None))(layer.neurons, place, rule.slot)
    read = jax.vmap(lambda array, slot: array[slot])
    theta = read(layer.neurons.theta, choice.slot)
    strength = read(layer.neurons.strength, choice.slot)
    heard = jnp.arange(rule.capacity) < layer.active
    exists = read(layer.neurons.hits, choice.slot) > 0
    fired = exists & ((jnp.abs(value) > theta) | (strength > theta))
    familiar = heard & choice.familiar
    return Response(heard & fired, choice.slot, familiar, familiar)


def listen(
    layer: Layer, value: Array, place: Array, rule: LayerRule, heard: Array | bool = True
) -> tuple[Layer, Response]:
    """Present an event to the neurons that know it; if none does, to the youngest alone.

    So the neurons of a layer share one memory, each bin in one place: what is known inhibits the
    rest, and what is new goes to the youngest, which breeds when it is full. The reference has a
    lateral bus for inhibition but never reads it, and there all full neurons would breed at once.

    Args:
      layer: state before the event.
      value: f32[], its magnitude.
      place: f32[D], where it falls.
      rule: the layer's rule; patience 1 for a memory that misses nothing.
      heard: bool[], False for an event to be ignored.

    Returns:
      State after it, and the response; `landed` in no neuron if it is new and there is no room.
    """
    value = jnp.broadcast_to(value, (rule.capacity,))
    place = jnp.broadcast_to(place, (rule.capacity, *place.shape))
    known = probe(layer, value, place, rule).familiar
    youngest = jnp.arange(rule.capacity) >= layer.active - 1  # and whom it may give birth to
    driven = heard & jnp.where(jnp.any(known), known, youngest)
    return present(layer, value, place, rule, driven=driven)


def end_tick(layer: Layer) -> Layer:
    """The second phase of a tick: time moves on."""
    return layer._replace(tick=layer.tick + 1)


def freeze(layer: Layer, frozen: bool = True) -> Layer:
    """Freeze every slot that exists, or free them all. A frozen slot fires but never changes."""
    neurons = layer.neurons
    return layer._replace(neurons=neurons._replace(frozen=(neurons.hits > 0) & frozen))
