"""How often a system came by the claims that it was asked about, as results hold it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from evidence.record import Record

Count = Annotated[int, Field(ge=0)]


class LinkingCounts(Record):
    """How a system that must find the claim came by it, in cards."""

    right: Count
    """The question's claim was found."""
    wrong: Count
    """Another was."""
    ambiguous: Count
    """Several might be meant, and none was taken."""
    not_found: Count
    """A name that nothing in the graph bears."""
    no_claim: Count
    """Extraction failed: no relation was seen."""
    by_word: Count
    """Replies read by an answer word."""
    by_statement: Count
    """Replies without one that state or deny the claim, or what settles it."""
    unread: Count
    """Replies that say neither."""
    cut: Count
    """Replies that ended at the longest length allowed, as the endpoint says."""
