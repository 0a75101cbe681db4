"""What an epistemic experiment finds, as typed objects."""

from __future__ import annotations

import evidence


class Results(evidence.Results):
    """The results of an epistemic experiment."""
