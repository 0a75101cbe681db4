"""The parts of a results file as typed objects."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict


class Record(BaseModel):
    """A part of a results file: frozen, validated, with no fields but its own.

    The string under a field says what it holds; the JSON Schema is made from both.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def _listed(value: Any) -> Any:
    """Arrays as nested lists, NaN and infinities as None: alike, whether computed or read back."""
    if hasattr(value, "__array__"):
        value = np.asarray(value).tolist()
    if isinstance(value, list | tuple):
        return tuple(_listed(entry) for entry in value)
    return None if isinstance(value, float) and not np.isfinite(value) else value


Number = Annotated[float | None, BeforeValidator(_listed)]
"""A number, or None where it is undefined."""
Numbers = Annotated[tuple[float | None, ...], BeforeValidator(_listed)]
"""f64[n], None where one is undefined."""
Integers = Annotated[tuple[int, ...], BeforeValidator(_listed)]
"""i64[n]."""
