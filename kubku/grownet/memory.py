"""A memory of facts made of GrowNet neurons, and what it recalls. An extension of ours.

The reference can't say which facts a network holds. Here one layer recognises who a fact is about:
a neuron of one slot anchors on the first entity that it meets, and one more grows for every entity
that falls outside. Each of these gates a neuron of an ORIGIN layer, whose bins at widths of 100%
are absolute coordinates, so that (attribute, value) is a bin of its own and a slot is a fact.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from kubku.grownet import growth
from kubku.grownet.growth import Layer, LayerRule
from kubku.grownet.slots import SPATIAL_BINS, SlotRule
from kubku.halo import ATTRIBUTES, VALUES, Statement

# Entities are numbers; at 0.25% of the anchor no two of the first four hundred share a bin.
_WHO_SLOT = SlotRule(limit=1, bin_width=(0.25,))
_FACT_SLOT = SlotRule(limit=16, bin_width=(100.0, 100.0), anchor="origin", spatial=True)


class Memory(NamedTuple):
    """What has been stated.

    Attributes:
      who: a neuron for each entity met, E at most.
      facts: E neurons of 16 facts each; row n listens when row n of `who` recognises.
    """

    who: Layer
    facts: Layer


_ALONE = LayerRule(_FACT_SLOT, capacity=1, initial=1)


def _who_rule(entities: int) -> LayerRule:
    return LayerRule(_WHO_SLOT, capacity=entities, initial=1, patience=1)


def empty(entities: int) -> Memory:
    """A memory of nothing, with room for facts about so many entities."""
    return Memory(
        who=growth.empty(_who_rule(entities)),
        facts=growth.empty(LayerRule(_FACT_SLOT, entities, entities)),
    )


def remember(memory: Memory, statement: Statement, stated: Array | bool) -> Memory:
    """Take in one statement (leaves i32[]); nothing where `stated` is False.

    Beyond 16 facts about an entity, or past the last entity there is room for, it is lost.
    """
    who_rule = _who_rule(memory.who.streak.shape[0])
    name = _name(statement.entity)
    who, recognised = growth.listen(memory.who, name, name[None], who_rule, stated)
    # Nothing but the neuron that is gated can change: it hears the fact as a layer of its own.
    row = jnp.argmax(recognised.landed)
    rows = memory.facts.neurons, memory.facts.streak, memory.facts.bred_at
    neuron, streak, bred_at = jax.tree.map(lambda leaf: leaf[row][None], rows)
    alone = Layer(neuron, jnp.int32(1), streak, bred_at, memory.facts.tick)
    gate = recognised.landed.any()
    alone, _ = growth.present(alone, jnp.ones(1), _place(statement)[None], _ALONE, driven=gate)
    heard = alone.neurons, alone.streak, alone.bred_at
    neurons, streak, bred_at = jax.tree.map(lambda a, b: a.at[row].set(b[0]), rows, heard)
    facts = memory.facts._replace(neurons=neurons, streak=streak, bred_at=bred_at)
    return Memory(growth.end_tick(who), growth.end_tick(facts))


def recall(memory: Memory, entity: Array) -> Array:
    """How strongly each value of each attribute of `entity` (i32[]) is remembered.

    Returns:
      f32[ATTRIBUTES, VALUES], slot strengths; 0 where nothing is. Changes nothing.
    """
    who_rule = _who_rule(memory.who.streak.shape[0])
    name = jnp.broadcast_to(_name(entity), (who_rule.capacity,))
    recognised = growth.probe(memory.who, name, name[:, None], who_rule).familiar
    row = jnp.argmax(recognised)
    facts = memory.facts.neurons
    held = recognised[row] & (facts.hits[row] > 0)
    frame = jnp.zeros(SPATIAL_BINS**2).at[facts.key[row]].add(held * facts.strength[row])
    # Columns 8 to 15 hold the attributes that have no row of their own.
    halves = frame.reshape(SPATIAL_BINS, -1, VALUES).swapaxes(0, 1)
    return halves.reshape(-1, VALUES)[:ATTRIBUTES]


def _name(entity: Array) -> Array:
    return 1.0 + entity.astype(jnp.float32)


def _place(statement: Statement) -> Array:
    half, row = jnp.divmod(statement.attribute, SPATIAL_BINS)
    return jnp.stack([row, half * VALUES + statement.value]).astype(jnp.float32)
