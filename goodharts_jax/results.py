"""What a Goodhart experiment finds, as typed objects."""

from __future__ import annotations

import evidence
from evidence.results import Manifest as _Manifest


class Manifest(_Manifest):
    """What made a Goodhart result."""

    survival_horizon: int
    """Steps after which a life that goes on is censored."""
    wall_seconds: dict[str, float]
    """By part of the run: training, evaluation, total."""


class Results(evidence.Results):
    """The results of a Goodhart experiment."""

    manifest: Manifest
