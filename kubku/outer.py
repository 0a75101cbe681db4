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


def _everywhere(outer: Outer) -> Mapping[str, Outer]:
    return {ELSEWHERE: outer}


OUTER: Mapping[str, Mapping[str, Outer]] = {
    "mlp": _everywhere(Outer(2e-3, 0.3)),
    "dictionary_mlp": _everywhere(Outer(4e-3)),
    "fast_weights": _everywhere(Outer(4e-3)),
    "rank_one": _everywhere(Outer(4e-3)),
    "hopfield": _everywhere(Outer(4e-3)),
    "holographic": _everywhere(Outer(8e-3)),
    # Not searched since they want a GPU: one setting each.
    "cnn": _everywhere(Outer(6e-3, 2.5)),
    "gru": _everywhere(Outer(6e-3, 0.5)),
    "transformer": _everywhere(Outer(2e-3, 0.1)),
    "gru_context": _everywhere(Outer(4e-3)),
    "transformer_context": _everywhere(Outer(2e-3)),
}
"""By network and family."""


def outer(name: str, family: str) -> Outer | None:
    """How a learner's base states are trained in a family; None if no network is trained."""
    found = OUTER.get(SAME_AS.get(name, name))
    return None if found is None else found.get(family, found[ELSEWHERE])
