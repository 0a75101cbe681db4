"""The first dense layer of a network, on views in which most cells are empty.

A product of such a view with the layer's weights is a sum of a few of their rows. So the cells that
hold an item are counted out, and their rows are added up; where a view of a batch, or all of them
together, hold more items than are provided for, the product is taken. Both ways are equal but for
the order in which float32 numbers are summed.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.custom_batching import custom_vmap

from goodharts_jax.world import NUM_KINDS

MOST = 12
"""Items of a view that are provided for. Where 300 lie in 100 x 100 cells, the most that the
protocol's world has, one view of 121 cells in 20,000 has more.
"""
_MEAN = 3
"""Likewise of all views of a batch, on average; the protocol's is 2.2."""
_WORD = 32


def rows(kernel: jax.Array, appearance: jax.Array) -> jax.Array:
    """What an item of each kind adds to the layer, in each cell; a row of zeros; and what a view
    with nothing in it comes to. float32[(kinds - 1) * C + 2, H].

    Args:
      kernel: of the layer, float32[C * channels, H], the channels of a cell beside each other.
      appearance: of each kind, the empty one first. float32[kinds, channels].
    """
    of_cells = kernel.reshape(-1, appearance.shape[1], kernel.shape[1])
    other = appearance[1:] - appearance[0]
    channels = range(appearance.shape[1])
    # By hand: of products of such small matrices XLA makes transposed copies.
    added = [sum(kind[i] * of_cells[:, i] for i in channels) for kind in other]
    empty = appearance[0] @ of_cells.sum(0)
    return jnp.concatenate([*added, 0 * empty[None], empty[None]])


def product(rows: jax.Array, view: jax.Array) -> jax.Array:
    """The layer's product with a view, before its bias. float32[H].

    Args:
      rows: of the function of that name; shared by all views of a batch. Flatten a batch of
        batches: there both ways are computed.
      view: codes. uint8[V, V].
    """
    return _added(rows, view) + rows[-1]


def _alone(rows: jax.Array, view: jax.Array) -> jax.Array:
    return _dense(rows, view[None])[0]


_added = custom_vmap(_alone)


@_added.def_vmap
def _added_in_batch(size: int, batched: list[bool], rows: jax.Array, views: jax.Array) -> Any:
    if batched[0]:
        axes = tuple(0 if each else None for each in batched)
        return jax.vmap(_alone, axes)(rows, views), True
    places, more = jax.vmap(partial(items, most=MOST))(views)
    many = jnp.sum(places != len(rows) - 2) > _MEAN * size
    is_dense = many | jnp.any(more)
    return lax.cond(is_dense, lambda: _dense(rows, views), lambda: _sum(rows, places)), True


def _dense(rows: jax.Array, views: jax.Array) -> jax.Array:
    """By a product of matrices. float32[B, H]."""
    kinds = jnp.arange(1, NUM_KINDS, dtype=views.dtype)[:, None, None]
    there = (views[:, None] == kinds).reshape(len(views), -1)
    return there.astype(rows.dtype) @ rows[: there.shape[1]]


@jax.custom_vjp
def _sum(rows: jax.Array, places: jax.Array) -> jax.Array:
    """Rows added up. float32[B, H] of int32[B, MOST]."""
    # One after the other XLA adds them in whole vectors; a gather of all takes it four times as
    # long.
    first, *others = (rows.at[place].get(mode="promise_in_bounds") for place in places.T)
    return sum(others, first)


def _sum_forward(rows: jax.Array, places: jax.Array) -> tuple[jax.Array, Any]:
    return _sum(rows, places), (rows, places)


def _sum_backward(kept: Any, gradient: jax.Array) -> tuple[jax.Array, Any]:
    """Of each row the gradients of the sums that it is in; the row of zeros' may be wrong."""
    rows, places = kept
    batch, most = places.shape
    # What is there goes to the front: fewer rows to add up, and one scatter for all.
    places = places.reshape(-1)
    there = places != len(rows) - 2
    at = jnp.where(there, jnp.cumsum(there) - 1, _MEAN * batch)
    which = jnp.full(_MEAN * batch, places.size).at[at].set(jnp.arange(places.size), mode="drop")
    row = places.at[which].get(mode="fill", fill_value=len(rows) - 2)
    each = gradient.at[which // most].get(mode="clip")
    found = jnp.zeros_like(rows).at[row].add(each, mode="promise_in_bounds")
    return found, np.zeros((batch, most), jax.dtypes.float0)


_sum.defvjp(_sum_forward, _sum_backward)


def items(view: jax.Array, most: int) -> tuple[jax.Array, jax.Array]:
    """Rows of what a view holds, and whether it holds more. int32[most], bool[].

    The row of zeros stands for what isn't there.
    """
    codes = view.reshape(-1).astype(jnp.int32)
    cells = codes.size
    words = -(-cells // _WORD)
    there = jnp.pad(codes != 0, (0, words * _WORD - cells)).reshape(words, _WORD)
    bits = jnp.sum(there.astype(jnp.uint32) << np.arange(_WORD, dtype=np.uint32), axis=1)
    rank = jnp.arange(most, dtype=jnp.int32)
    word, cell, before, end = bits[0], jnp.int32(0), jnp.int32(0), _ones(bits[0])
    for i in range(1, words):
        later = rank >= end
        word, cell = jnp.where(later, bits[i], word), jnp.where(later, _WORD * i, cell)
        before, end = jnp.where(later, end, before), end + _ones(bits[i])
    rank -= before
    # The bit of that rank in its word, by halves.
    for width in (16, 8, 4, 2, 1):
        below = _ones(word & jnp.uint32((1 << width) - 1))
        later = rank >= below
        rank = jnp.where(later, rank - below, rank)
        word = jnp.where(later, word >> width, word)
        cell = jnp.where(later, cell + width, cell)
    is_there = jnp.arange(most) < end
    kind = jnp.where(is_there, codes.at[cell].get(mode="clip"), NUM_KINDS)
    return (kind - 1) * cells + jnp.where(is_there, cell, 0), end > most


def _ones(word: jax.Array) -> jax.Array:
    return lax.population_count(word).astype(jnp.int32)
