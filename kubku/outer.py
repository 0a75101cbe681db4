"""How each network's base states are trained: the best settings of `python -m benchmarks outer`.

It stands by itself so that another setting for one network makes anew the base states of that
network alone.
"""

from __future__ import annotations

from kubku.base_states import Outer

OUTER = {
    "mlp": Outer(2e-3, 0.3),
    "dictionary_mlp": Outer(4e-3),
    "fast_weights": Outer(4e-3),
    "rank_one": Outer(4e-3),
    "hopfield": Outer(4e-3),
    "holographic": Outer(8e-3),
    # Not searched again since they want a GPU.
    "cnn": Outer(6e-3, 2.5),
    "gru": Outer(6e-3, 0.5),
    "transformer": Outer(2e-3, 0.1),
    "gru_context": Outer(4e-3),
    "transformer_context": Outer(2e-3),
}
