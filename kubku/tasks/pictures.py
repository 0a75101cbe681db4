"""Statements as grey pictures of 8 x 8 pixels, which a family shows instead of telling them.

The upper half of a frame holds the cue of an attribute, four lit pixels of 32; the lower half the
pattern of one of its values, four of 32 again. Which pixels, is drawn for each generator seed: no
two cues share more than one, the values of one attribute share none, and those of different
attributes are drawn without regard to each other. A frame then gets noise: in each half one pixel
that means nothing is lit, too (a distractor), and every pixel's grey is off by a normal error whose
size is drawn for the frame.

So stating and asking are showing a frame; who it is about is told beside it, as in every family.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kubku.halo import ATTRIBUTES, DARK, FRAME, LIT, VALUES, Samples, Statement

HALF = FRAME[0] * FRAME[1] // 2
LIT_PIXELS = 4
NOISE = 0.05, 0.15
"""Least and largest standard deviation of a frame's greys, of which black to white is 1."""


class Prototypes(NamedTuple):
    """What is lit in frames without noise.

    Attributes:
      cues: bool[ATTRIBUTES, HALF], upper halves.
      values: bool[ATTRIBUTES, VALUES, HALF], lower halves.
    """

    cues: jax.Array
    values: jax.Array


@jax.jit
def prototypes(key: jax.Array) -> Prototypes:
    """Those of a generator seed."""
    of_order, of_lines, of_values = jax.random.split(key, 3)
    lines = jnp.asarray(_lines())
    chosen = jax.random.permutation(of_lines, len(lines))[:ATTRIBUTES]
    places = jax.random.permutation(of_order, HALF)
    cues = lines[chosen][:, places]

    def of_attribute(key: jax.Array) -> jax.Array:
        owner = jax.random.permutation(key, jnp.repeat(jnp.arange(VALUES), HALF // VALUES))
        return owner == jnp.arange(VALUES)[:, None]

    return Prototypes(cues, jax.vmap(of_attribute)(jax.random.split(of_values, ATTRIBUTES)))


def _lines() -> np.ndarray:
    """64 patterns of 4 of 32 pixels, any two of which share one at most, bool[64, HALF].

    Pattern (a, b) lights the pixel a x + b of each of 4 columns x of 8 pixels, in the field of 8
    elements, where two lines meet in one point at most.
    """

    def times(a: int, b: int) -> int:
        product = 0
        for bit in range(3):
            product ^= (a << bit) * (b >> bit & 1)
        for high in (4, 3):  # modulo x^3 + x + 1
            product ^= (0b1011 << (high - 3)) * (product >> high & 1)
        return product

    lit = np.zeros((64, LIT_PIXELS, 8), bool)
    for a in range(8):
        for b in range(8):
            for x in range(LIT_PIXELS):
                lit[8 * a + b, x, times(a, x) ^ b] = True
    return lit.reshape(64, HALF)


def clean(shapes: Prototypes, statement: Statement) -> jax.Array:
    """Which pixels a statement lights, bool[..., 2, HALF]."""
    upper = shapes.cues[statement.attribute]
    return jnp.stack([upper, shapes.values[statement.attribute, statement.value]], -2)


def frame(shapes: Prototypes, key: jax.Array, statement: Statement) -> jax.Array:
    """Frames of statements, i32[N] leaves: u8[N, *FRAME]."""
    lit = clean(shapes, statement)
    of_distractors, of_size, of_noise = jax.random.split(key, 3)
    astray = jax.random.randint(of_distractors, lit.shape[:-1], 0, HALF)
    lit |= jnp.arange(HALF) == astray[..., None]
    size = jax.random.uniform(of_size, (*lit.shape[:-2], 1, 1), minval=NOISE[0], maxval=NOISE[1])
    grey = jnp.where(lit, LIT, DARK) + size * jax.random.normal(of_noise, lit.shape)
    return jnp.round(255 * jnp.clip(grey, 0, 1)).astype(jnp.uint8).reshape(-1, *FRAME)


def paint(shapes: Prototypes, key: jax.Array, samples: Samples) -> Samples:
    """The same samples, NumPy leaves [N, ...], with their frames.

    The noise of sample i depends on the key and i; that of a pair is the same in both.
    """
    size = samples.label.shape[0]
    rows = np.where(samples.pair >= 0, samples.pair, np.arange(size))
    done = []
    for start in range(0, size, _BLOCK):
        part = slice(start, start + _BLOCK)
        told = jax.tree.map(
            lambda leaf, part=part: np.resize(leaf[part], (_BLOCK, *leaf.shape[1:])),
            (samples.exposure, samples.query),
        )
        done.append(jax.device_get(_painted(shapes, key, np.resize(rows[part], _BLOCK), told)))
    shown: Any
    asked: Any
    shown, asked = (np.concatenate(frames)[:size] for frames in zip(*done, strict=True))
    return samples._replace(
        exposure=samples.exposure._replace(frame=shown), query=samples.query._replace(frame=asked)
    )


_BLOCK = 256


@jax.jit
def _painted(
    shapes: Prototypes, key: jax.Array, rows: jax.Array, told: tuple[Statement, Statement]
) -> tuple[jax.Array, jax.Array]:
    def one(row: jax.Array, told: tuple[Statement, Statement]) -> tuple[jax.Array, jax.Array]:
        shown, asked = jax.random.split(jax.random.fold_in(key, row))
        return frame(shapes, shown, told[0]), frame(shapes, asked, told[1])

    return jax.vmap(one)(rows, told)
