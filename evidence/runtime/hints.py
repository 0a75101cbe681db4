"""What to say when a command line names a setting, a group or an option that isn't there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evidence.runtime.config import did_you_mean


@contextmanager
def hydra_errors_explained(folder: Path) -> Iterator[None]:
    """Let Hydra raise its errors rather than print them, and turn those on a bad command line into
    a ValueError of one line.

    Args:
      folder: of the settings' files.
    """
    from hydra.errors import HydraException, OverrideParseException
    from omegaconf.errors import OmegaConfBaseException

    before = os.environ.get("HYDRA_FULL_ERROR")
    os.environ["HYDRA_FULL_ERROR"] = "1"
    try:
        yield
    except OverrideParseException as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{error.override}: can't be read ({first}); is it quoted?") from None
    except (HydraException, OmegaConfBaseException) as error:
        raise ValueError(explained(str(error), folder)) from None
    finally:
        del os.environ["HYDRA_FULL_ERROR"]
        if before is not None:
            os.environ["HYDRA_FULL_ERROR"] = before


def explained(message: str, folder: Path) -> str:
    """A message of Hydra's in one line, with the nearest name there is.

    Args:
      message: what Hydra said.
      folder: of the settings' files.
    """
    first = message.strip().splitlines()[0].removesuffix(".")
    if found := re.search(r"Could not find '(?:(.+)/)?([^/']+)'", message):
        group, option = found[1], found[2]
        options = re.findall(r"^\t(\S+)$", message, re.M)
        known = f"; {group} can be {', '.join(options)}" if options else ""
        return f"Could not find '{group}/{option}'{did_you_mean(option, options)}{known}"
    if found := re.search(r"Could not override '([^']+)'", message):
        name = found[1]
        meant = did_you_mean(name, known_names(folder))
        return f"Could not override '{name}': there is no such setting or group{meant}"
    return first


def known_names(folder: Path) -> list[str]:
    """Every setting by its full name, and the groups of settings, as far as they compose."""
    from hydra import compose, initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra
    from omegaconf import OmegaConf

    groups = [path.name for path in sorted(folder.iterdir()) if path.is_dir()]
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(folder), version_base="1.3"):
        config = OmegaConf.to_container(compose("config"))
    return [*groups, *(name for name, _ in leaves(config))]


def leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every setting by its full name, such as `ppo.clip`, with its value."""
    if not isinstance(node, Mapping):
        return
    for name, entry in node.items():
        if isinstance(entry, Mapping):
            yield from leaves(entry, f"{place}{name}.")
        else:
            yield f"{place}{name}", entry
