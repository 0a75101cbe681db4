"""Programs that are soon done: the same numbers, and options of the user's own come first."""

import jax.numpy as jnp
import numpy as np
import pytest

from evidence.runtime.compiling import brief, in_brief
from evidence.runtime.devices import fetch, over_runs, shard


@pytest.mark.parametrize("flags, found", [("", 1), ("--xla_backend_optimization_level=0", None)])
def test_a_users_own_level_stays(monkeypatch, flags, found):
    monkeypatch.setenv("XLA_FLAGS", flags)
    assert (in_brief() or {}).get("xla_backend_optimization_level") == found


def test_what_is_soon_done_finds_the_same(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")

    def power(x, to):
        """So often."""
        return x**to

    once = brief(power, static_argnames="to")
    assert once(jnp.arange(3), to=2).tolist() == [0, 1, 4]
    assert once.__doc__ == "So often."
    runs = np.arange(5, dtype=np.float32)
    lifted = over_runs(lambda shared, x: shared * x, brief=True)
    np.testing.assert_array_equal(fetch(lifted(jnp.float32(2), shard(runs)), 5), 2 * runs)
