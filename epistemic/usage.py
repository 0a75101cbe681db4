"""What asking a language model took: tokens and, at given prices, cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from epistemic.evaluate import Row
from evidence.record import Record

_Count = Annotated[int, Field(ge=0)]


class Usage(Record):
    """What a system's replies took; those that the endpoint didn't count are left out."""

    replies: _Count
    """That were counted."""
    prompt_tokens: _Count
    """Of their prompts."""
    completion_tokens: _Count
    """Of the replies."""
    cost: float | None
    """At the prices given; cached replies cost nothing again. None: no prices."""

    def __str__(self) -> str:
        said = (
            f"{self.replies:,} replies, {self.prompt_tokens:,} tokens of prompts and "
            f"{self.completion_tokens:,} of replies"
        )
        return said if self.cost is None else f"{said}, cost {self.cost:,.4g}"


def usage_of(rows: Iterable[Row]) -> Usage | None:
    """What a system's answers took, None where no reply was counted."""
    counted = [row for row in rows if row.prompt_tokens is not None]
    if not counted:
        return None
    costs = [row.cost for row in counted if row.cost is not None]
    return Usage(
        replies=len(counted),
        prompt_tokens=sum(row.prompt_tokens or 0 for row in counted),
        completion_tokens=sum(row.completion_tokens or 0 for row in counted),
        cost=sum(costs) if costs else None,
    )
