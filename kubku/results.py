"""What a KU/BKU experiment finds, as typed objects."""

from __future__ import annotations

import evidence
from evidence.results import Manifest as _Manifest


class Manifest(_Manifest):
    """What made a KU/BKU result."""

    wall_seconds: float
    """Of the whole command."""
    seconds_base: float
    """That base states took, over all cells."""
    cells_made_on: tuple[str, ...]
    """Kinds of device, since a run may be gone on with elsewhere."""


class Results(evidence.Results):
    """The results of a KU/BKU experiment."""

    manifest: Manifest
