"""Learners that read numbers, before frames: each frame is read as its nearest patterns.

The patterns are found without looking at any answer, by leader clustering (Hartigan, 1975) of the
grey halves of the pretraining split's frames: one that is near to no leader becomes one. Lower
halves are clustered for each upper pattern by itself. Nothing is ever novel to who reads so: the
nearest pattern is always taken.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kubku.base_states import Make, Maker
from kubku.halo import ATTRIBUTES, DARK, FRAME, VALUES, Learner, Sample, Samples, State, Statement

HALF = FRAME[0] * FRAME[1] // 2
NEAR = 0.45
"""The least cosine at which a frame belongs to a leader."""
LOOKED_AT = 128
"""Samples of the pretraining split whose frames are clustered."""


class Codebook(NamedTuple):
    """Leaders: sums of the halves that belong to them, 0 where there is none.

    Attributes:
      upper: f32[ATTRIBUTES, HALF].
      lower: f32[ATTRIBUTES, VALUES, HALF], of each upper one.
    """

    upper: jax.Array
    lower: jax.Array


def blank() -> Codebook:
    """No leaders."""
    shape = ATTRIBUTES, HALF
    return Codebook(jnp.zeros(shape), jnp.zeros((ATTRIBUTES, VALUES, HALF)))


def fitted(frames: jax.Array) -> Codebook:
    """The leaders of frames, u8[N, *FRAME], in their order."""

    def look(book: Codebook, halves: jax.Array) -> tuple[Codebook, None]:
        upper, there = _leader(book.upper, halves[0])
        lower, beneath = _leader(book.lower[upper], halves[1])
        joined = there & beneath
        return Codebook(
            book.upper.at[upper].add(there * halves[0]),
            book.lower.at[upper, lower].add(joined * halves[1]),
        ), None

    return lax.scan(look, blank(), _halves(frames))[0]


def read(book: Codebook, said: Statement) -> Statement:
    """A statement (any leading axes), its frame read as the numbers of its nearest patterns."""
    halves = _halves(said.frame)
    upper = jnp.argmax(_near(book.upper, halves[..., 0, :]), -1)
    lower = jnp.argmax(_near(book.lower[upper], halves[..., 1, :]), -1)
    return Statement(said.template, said.entity, upper, lower)


def by_nearest_pattern(learner: Learner) -> Learner:
    """The same learner, before frames. Its base states are made after the patterns are found; what
    was its start becomes `fitted`.
    """

    def init(key: jax.Array) -> State:
        return _joined(learner.init(key), blank())

    def learn(state: State, sample: Sample) -> State:
        own, book = _parted(state)
        return _joined(learner.learn(own, _told(book, sample)), book)

    def answer(state: State, query: Statement) -> jax.Array:
        own, book = _parted(state)
        return learner.answer(own, read(book, query))

    def after(make: Make | None) -> Make:
        def made(make: Make | None, state: State, samples: Samples, key: jax.Array) -> State:
            own, _ = _parted(state)
            book, told = _read(samples)
            return _joined(own if make is None else make(own, told, key), book)

        if not isinstance(make, Maker):
            return partial(made, make)
        return Maker(
            lambda outer, *of: made(dataclasses.replace(make, outer=outer), *of), make.outer
        )

    bases = {name if make else "fitted": after(make) for name, make in learner.bases.items()}
    return learner._replace(init=init, learn=learn, answer=answer, bases=bases)


@jax.jit
def _read(samples: Samples) -> tuple[Codebook, Samples]:
    """The patterns of samples, and what these say by them."""
    first = (samples.exposure.frame, samples.query.frame)
    frames = [f[:LOOKED_AT].reshape(-1, *FRAME) for f in first if f is not None]
    book = fitted(jnp.concatenate(frames))
    return book, _told(book, samples)


def _told(book: Codebook, samples: Samples) -> Samples:
    exposure, query = read(book, samples.exposure), read(book, samples.query)
    return samples._replace(exposure=exposure, query=query)


@cache
def _reading(own: Hashable) -> Any:
    """The type of a state with a learner's own fields, so that its settings can be tuned, and the
    patterns; `own` is None for a state that has no fields.
    """
    fields = [(name, Any) for name in (*getattr(own, "_fields", ("own",)), "book")]
    reading = NamedTuple("Reading", fields)  # type: ignore[misc]
    setattr(reading, "of", own)  # noqa: B010
    return reading


def _joined(own: Any, book: Codebook) -> Any:
    kind: Any = type(own)
    if hasattr(own, "_fields"):
        return _reading(kind)(*own, book)
    return _reading(None)(own, book)


def _parted(state: Any) -> tuple[Any, Codebook]:
    own = state[0] if state.of is None else state.of(*state[:-1])
    return own, state.book


def _halves(frames: jax.Array | None) -> jax.Array:
    """Frames as f32[..., 2, HALF], less the ground's grey."""
    assert frames is not None, "only frames have patterns"
    grey = jnp.asarray(frames).astype(jnp.float32) / 255 - DARK
    return grey.reshape(*frames.shape[:-2], 2, HALF)


def _near(leaders: jax.Array, half: jax.Array) -> jax.Array:
    """Cosines f32[..., N] of leaders f32[..., N, HALF] to halves f32[..., HALF]; -1 for none."""
    length = jnp.linalg.norm(leaders, axis=-1)
    cosine = (leaders * half[..., None, :]).sum(-1) / jnp.maximum(
        length * jnp.linalg.norm(half, axis=-1)[..., None], 1e-9
    )
    return jnp.where(length > 0, cosine, -1.0)


def _leader(leaders: jax.Array, half: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Whom a half belongs to, itself if it is near to nobody; False where there is no room."""
    near = _near(leaders, half)
    known, number = near.max() >= NEAR, (leaders != 0).any(-1).sum()
    return jnp.where(known, jnp.argmax(near), number), known | (number < leaders.shape[0])
