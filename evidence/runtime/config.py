"""Configuration at the border: Hydra's nodes in, validated frozen settings out, once."""

from __future__ import annotations

from typing import Any, TypeVar, get_args

from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict, ValidationError

Model = TypeVar("Model", bound="Settings")


class Settings(BaseModel):
    """A group of settings: frozen, hashable, no unknown keys, no silent type conversion."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def build(model: type[Model], node: Any, at: str) -> Model:
    """Validate one group of settings.

    Args:
      model: the settings' class.
      node: an OmegaConf node or plain data.
      at: where the group stands in the configuration, such as "ppo"; named in errors.

    Raises:
      ValueError: one line a problem, with the setting, its value and what is allowed.
    """
    data = OmegaConf.to_container(node, resolve=True) if OmegaConf.is_config(node) else node
    try:
        return model.model_validate(_given(data))
    except ValidationError as error:
        raise ValueError("\n".join(_explain(model, at, e) for e in error.errors())) from None


def _given(data: Any) -> Any:
    """The settings without those that are only announced, as `???`."""
    if isinstance(data, dict):
        return {name: _given(value) for name, value in data.items() if value != "???"}
    return data


def _explain(model: type[Settings], at: str, error: Any) -> str:
    parts = [str(part) for part in error["loc"]]
    place = ".".join([at, *parts] if at else parts)
    if error["type"] == "extra_forbidden":
        return f"{place}: no such setting; there are {', '.join(_siblings(model, parts))}"
    if error["type"] == "missing":
        return f"{place}: this setting is missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        # Raised by a validator of ours, which names the settings and the fix itself.
        return message if message.startswith(place) else f"{place}: {message}"
    return f"{place}={error['input']!r}: {message[0].lower()}{message[1:]}"


def _siblings(model: type[Settings], parts: list[str]) -> list[str]:
    """The settings beside the one at the end of a path."""
    owner: Any = model
    for part in parts[:-1]:
        inner = owner.model_fields[part].annotation if part in owner.model_fields else None
        # A setting inside a mapping's values, such as modes.NAME.pays, has their type.
        owner = inner if isinstance(inner, type) else get_args(inner)[-1] if inner else owner
    return list(owner.model_fields)
