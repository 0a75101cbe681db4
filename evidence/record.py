"""The parts of a results file as typed objects."""

from __future__ import annotations

import ast
import inspect
import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler
from pydantic_core import CoreSchema

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue


class Record(BaseModel):
    """A part of a results file: frozen, validated, with no fields but its own.

    The string under a field says what it holds; the JSON Schema is made from both.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # Not pydantic's `use_attribute_docstrings`, which reads the source at every import.
        schema = handler(core_schema)
        fields = handler.resolve_ref_schema(schema).get("properties", {})
        for name, sentence in _sentences(cls).items():
            if name in fields:
                fields[name]["description"] = sentence
        return schema


def _sentences(kind: type[Record]) -> dict[str, str]:
    """The string under each field of a record, by the field's name."""
    found = {}
    for base in reversed(kind.__mro__):
        if not issubclass(base, Record):
            continue
        try:
            [whole] = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        except OSError:  # a generic record with its parameter, which has no source of its own
            continue
        assert isinstance(whole, ast.ClassDef)
        for field, under in pairwise(whole.body):
            match field, under:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(sentence))),
                ):
                    found[name] = inspect.cleandoc(sentence)
    return found


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
