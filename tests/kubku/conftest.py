"""Samples that several tests read."""

import os

import jax
import numpy as np
import pytest

from kubku.tasks import FAMILIES, generate, generation, pictures


@pytest.fixture(scope="session", autouse=True)
def samples_are_drawn_fast():
    """Tests draw 100,000 samples: the two programs that make them are worth optimising."""
    if "optimization_level=0" in os.environ["XLA_FLAGS"]:
        for module, name in ((generation, "_chunk"), (pictures, "_painted")):
            program = getattr(module, name).__wrapped__
            optimised = jax.jit(program, compiler_options={"xla_backend_optimization_level": 1})
            setattr(module, name, optimised)


@pytest.fixture(scope="session")
def drawn():
    """Test-split samples by family, as NumPy arrays; 512 of each, made once."""
    made = {}

    def of(name, split="test", n=512):
        if (name, split) not in made:
            samples = generate(FAMILIES[name], jax.random.key(5), n, split)
            made[name, split] = jax.tree.map(np.asarray, samples)
        return made[name, split]

    return of
