"""Configuration at the border: Hydra's nodes in, validated frozen settings out, once."""

from __future__ import annotations

from typing import Any, TypeVar

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
        return model.model_validate(data)
    except ValidationError as error:
        raise ValueError("\n".join(_explain(model, at, e) for e in error.errors())) from None


def _explain(model: type[Settings], at: str, error: Any) -> str:
    place = ".".join([at, *(str(part) for part in error["loc"])])
    if error["type"] == "extra_forbidden":
        return f"{place}: no such setting; {at} has {', '.join(model.model_fields)}"
    if error["type"] == "missing":
        return f"{place}: this setting is missing"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        # Raised by a validator of ours, which names the settings and the fix itself.
        return message if message.startswith(at) else f"{place}: {message}"
    return f"{place}={error['input']!r}: {message[0].lower()}{message[1:]}"
