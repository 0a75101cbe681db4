"""Holographic reduced representations: all facts of a sample superposed in one vector.

Plate (1995), "Holographic reduced representations": a role and its filler are bound by circular
convolution, bound pairs are added to a trace, and correlating the trace with a role gives back its
filler and noise, which a clean-up memory of the known fillers takes away. The role here is an
entity bound to an attribute, the filler a value. Vectors are unitary (each component of the
spectrum has length 1), so that correlation inverts convolution, and they are kept as their spectra,
where convolution is a product.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kubku.halo import DRAWN, Learner, Sample, Sizes
from kubku.learners.recall import facts, recalling, settled

DIMENSIONS = 1024
TRIALS = tuple({"doubt": 0.3 + 0.05 * step} for step in range(8))


class Hologram(NamedTuple):
    """`holographic`'s state.

    Attributes:
      trace: spectrum of the sum of all bound pairs, real parts then imaginary ones, f32[2F].
      doubt: f32[], similarity to a known filler below which it takes a recall for noise.
      params, trained: of the reader.
    """

    trace: jax.Array
    doubt: jax.Array
    params: Any = None
    trained: Any = None


def unitary(number: int, dimensions: int, seed: int) -> np.ndarray:
    """Spectra of random real unitary vectors, complex64[number, dimensions // 2 + 1]."""
    generator = np.random.default_rng(seed)
    spectra = np.exp(2j * np.pi * generator.random((number, dimensions // 2 + 1)))
    # Of a real vector of even length the first and last component are real.
    spectra[:, [0, -1]] = generator.choice([-1.0, 1.0], (number, 2))
    return spectra.astype(np.complex64)


def fillers(roles: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What the trace, unbound from an entity, is compared with: each value bound to each role.

    Args:
      roles, values: spectra, complex64[A, F] and [V, F].

    Returns:
      f32[A * V, 2F], rows whose product with the spectrum of a vector (real parts, then imaginary
      ones) is its inner product with the bound pair, by Parseval's theorem.
    """
    bound = (roles[:, None] * values).reshape(-1, roles.shape[1])
    times = np.full(roles.shape[1], 2.0)  # all but two components stand for their conjugates, too
    times[[0, -1]] = 1.0
    return (np.concatenate([bound.real * times, bound.imag * times], -1) / times.sum()).astype(
        np.float32
    )


def holographic(sizes: Sizes = DRAWN, dimensions: int = DIMENSIONS) -> Learner:
    """One trace of (entity, attribute, value), and a reader.

    Args:
      sizes: of the family.
      dimensions: of a vector, even.
    """
    who, role, value = (
        unitary(number, dimensions, seed)
        for seed, number in enumerate((sizes.entities, sizes.base, sizes.values))
    )
    known = fillers(role, value)

    def init() -> Hologram:
        return Hologram(jnp.zeros(known.shape[1]), jnp.float32(0.5))

    def learn(state: Hologram, sample: Sample) -> Hologram:
        said, is_fact = sample.exposure, facts(sample)
        stated = jnp.minimum(said.attribute, sizes.base - 1)
        pairs = jnp.asarray(who)[said.entity] * jnp.asarray(role)[stated]
        added = ((pairs * jnp.asarray(value)[said.value]) * is_fact[:, None]).sum(0)
        return state._replace(trace=state.trace + jnp.concatenate([added.real, added.imag]))

    def recall(state: Hologram, entity: jax.Array) -> jax.Array:
        real, imaginary = jnp.split(state.trace, 2)
        freed = (real + 1j * imaginary) * jnp.conj(jnp.asarray(who)[entity])
        similar = jnp.asarray(known) @ jnp.concatenate([freed.real, freed.imag])
        return settled(similar.reshape(sizes.base, sizes.values), state.doubt)

    return recalling(init, learn, recall, sizes, TRIALS)
