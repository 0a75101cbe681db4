"""Configuration at the border: Hydra's nodes in, validated frozen settings out, once."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, get_args

from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict, ValidationError

typed: ContextVar[str | None] = ContextVar("typed", default=None)
"""The command that the run at hand began with; None in a program of one's own."""

Model = TypeVar("Model", bound="Settings")


class Settings(BaseModel):
    """A group of settings: frozen, hashable, no unknown keys, no silent type conversion, no number
    that isn't finite.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def settings_folder() -> Path:
    """Where the settings' files are: `conf/` of a checkout, or what a wheel has of it.

    Raises:
      FileNotFoundError: neither is there.
    """
    above = Path(__file__).parents[2]
    for folder in (above / "goodharts_jax_experiments" / "conf", above / "conf"):
        if (folder / "thesis").is_dir():
            return folder
    raise FileNotFoundError(f"{above / 'conf'} does not exist: the settings are not installed")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of `names` that a misspelt `name` was meant to be, or None where none is near.

    Of a dotted name its last part may also stand for the whole, as `clip` does for `ppo.clip`.
    """
    known = list(dict.fromkeys(names))
    if found := difflib.get_close_matches(name, known, n=1, cutoff=0.75):
        return found[0]
    ends = {full.rpartition(".")[2]: full for full in known}
    found = difflib.get_close_matches(name.rpartition(".")[2], list(ends), n=1, cutoff=0.75)
    return ends[found[0]] if found else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """`"; did you mean NAME?"`, or nothing where none of `names` is near."""
    meant = nearest(name, names)
    return f"; did you mean {meant}?" if meant else ""


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
    parts, owner = _walk(model, [str(part) for part in error["loc"]])
    place = ".".join([at, *parts] if at else parts)
    if error["type"] == "extra_forbidden":
        known = _fields(_walk(model, [str(part) for part in error["loc"][:-1]])[1])
        hint = did_you_mean(parts[-1], known)
        return f"{place}: no such setting{hint or ';'} there are {', '.join(known)}"
    if error["type"] == "missing":
        return f"{place}: this setting is missing"
    if error["type"] in ("dict_type", "model_type"):
        groups = {path.name for path in settings_folder().glob("*/*") if path.is_dir()} - {place}
        meant = nearest(place, groups)
        hint = f"; did you mean {meant}={error['input']}?" if meant else ""
        return f"{place}={error['input']!r}: {place} holds settings, and is none itself{hint}"
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "value_error":
        return _at(owner, place, message)
    return f"{place}={error['input']!r}: {message[0].lower()}{message[1:]}"


def _at(owner: Any, place: str, message: str) -> str:
    """What a validator of ours says, with its place: it begins with a setting of its own group, or
    with one in full.
    """
    if message.startswith(place):
        return message
    first = re.match(r"\w+(?=[=: ])", message)
    within = first is not None and first[0] in _fields(owner)
    return f"{place}.{message}" if within else f"{place}: {message}"


def _walk(model: type[Settings], parts: list[str]) -> tuple[list[str], Any]:
    """A path as users write it, and the type of what is there.

    Where a group is one of several, told apart by a setting such as `kind`, pydantic's path names
    which, and a user's doesn't.
    """
    owner: Any = model
    place, kinds, by = list[str](), list[Any](), ""
    for part in parts:
        if kinds:
            chosen = [k for k in kinds if part in get_args(k.model_fields[by].annotation)]
            owner, kinds = (chosen or kinds)[0], []
            continue
        place.append(part)
        inner = getattr(owner, "model_fields", {}).get(part)
        found = inner.annotation if inner is not None else None
        if inner is not None and isinstance(inner.discriminator, str):
            kinds, by = list(get_args(found)), inner.discriminator
        # A setting inside a mapping's values, such as modes.NAME.pays, has their type.
        owner = found if isinstance(found, type) else get_args(found)[-1] if found else owner
    return place, owner


def _fields(owner: Any) -> list[str]:
    """The settings of a group, none where there is no group."""
    return list(getattr(owner, "model_fields", {}))
