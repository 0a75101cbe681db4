"""Two studies of different domains compared, as typed objects: `comparison.json`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from epistemic.results import Four
from evidence.measurement import Measurement
from evidence.record import Record


class DeckDifference(Record):
    """How a system differs between two decks: the first minus the second, seed convention."""

    as_dealt: Four[Measurement]
    """With each deck's own shares of labels."""
    at_equal_labels: Four[Measurement]
    """With every label weighing the same in both decks, so that what is left is the system's."""


class DomainComparison(Record):
    """Two studies of different domains whose systems were set alike."""

    one: str
    """The first domain."""
    other: str
    """The second."""
    folders: tuple[str, str]
    """Names of their output folders."""
    systems: Mapping[str, DeckDifference]
    """By system, of those that both have."""


_COMPARISONS = TypeAdapter(tuple[DomainComparison, ...])


def load_comparisons(folder: str | Path) -> tuple[DomainComparison, ...]:
    """The domains compared, from the comparison.json that a multirun left in `folder`.

    Raises:
      FileNotFoundError: there is none.
      ValueError: the file holds something else; names the file.
    """
    path = Path(folder) / "comparison.json"
    try:
        return _COMPARISONS.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path} at {place}: {first['msg']}") from None
