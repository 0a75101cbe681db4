"""What asking a language model took: tokens and, at given prices, cost."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

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
