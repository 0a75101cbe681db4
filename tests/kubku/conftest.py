"""Samples that several tests read."""

import jax
import numpy as np
import pytest

from kubku.tasks import FAMILIES, generate


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
