"""How each network's base states are trained in each family that is drawn: the best settings that
`python -m benchmarks outer` found.

They stand by themselves so that another setting for one network makes anew the base states of that
network alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubku.base_states import Outer

SAME_AS = {"mlp_replay": "mlp"}
"""Whose settings another learner gets that is the same network."""

ELSEWHERE = "stories"
"""Whose settings a family gets that wasn't searched in: a public set, a file of samples."""


def _readers(**rates: float) -> Mapping[str, Outer]:
    return {family: Outer(rate) for family, rate in rates.items()}


OUTER: Mapping[str, Mapping[str, Outer]] = {
    "mlp": {
        "stories": Outer(2e-3, 0.9),
        "series": Outer(2e-3, 0.9),
        "grids": Outer(2e-3, 0.3),
        "frames": Outer(1e-3, 0.1),
    },
    "dictionary_mlp": _readers(stories=8e-3, series=8e-3, grids=4e-3, frames=8e-3),
    "fast_weights": _readers(stories=4e-3, series=8e-3, grids=4e-3, frames=4e-3),
    "rank_one": _readers(stories=4e-3, series=4e-3, grids=8e-3, frames=8e-3),
    "hopfield": _readers(stories=4e-3, series=8e-3, grids=4e-3, frames=8e-3),
    "holographic": _readers(stories=4e-3, series=8e-3, grids=4e-3, frames=8e-3),
    # Not searched since they want a GPU: one setting each.
    "cnn": {ELSEWHERE: Outer(6e-3, 2.5)},
    "gru": {ELSEWHERE: Outer(6e-3, 0.5)},
    "transformer": {ELSEWHERE: Outer(2e-3, 0.1)},
    "gru_context": {ELSEWHERE: Outer(4e-3)},
    "transformer_context": {ELSEWHERE: Outer(2e-3)},
}
"""By network and family."""


def outer(name: str, family: str) -> Outer | None:
    """How a learner's base states are trained in a family; None if no network is trained."""
    found = OUTER.get(SAME_AS.get(name, name))
    return None if found is None else found.get(family, found[ELSEWHERE])
