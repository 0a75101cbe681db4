"""How each network's base states are trained in each family: the best trials of
`python -m benchmarks outer`.

It stands by itself so that another setting for one network makes anew the base states of that
network alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubku.base_states import Outer


class Searched(NamedTuple):
    """What was found best for a network.

    Attributes:
      usual: in families where nothing was searched.
      best: by family.
    """

    usual: Outer
    best: Mapping[str, Outer] = {}

    def within(self, family: str) -> Outer:
        """How the network is trained in a family."""
        return self.best.get(family, self.usual)


OUTER = {
    "mlp": Searched(
        Outer(0.002, 0.8333333333333334),
        {
            "stories": Outer(0.002, 0.8333333333333334),
            "series": Outer(0.004, 0.8333333333333334),
            "grids": Outer(0.002, 0.2777777777777778),
            "frames": Outer(0.004, 0.8333333333333334),
        },
    ),
    "cnn": Searched(Outer(6e-3, 2.5)),
    "gru": Searched(Outer(6e-3, 0.5)),
    "transformer": Searched(Outer(2e-3, 0.1)),
    "gru_context": Searched(Outer(4e-3)),
    "transformer_context": Searched(Outer(2e-3)),
    # And of all whose memory the same network reads.
    "dictionary_mlp": Searched(
        Outer(0.008),
        {
            "stories": Outer(0.008),
            "series": Outer(0.008),
            "grids": Outer(0.004),
        },
    ),
}
