"""What an experiment found, as a typed object: made by the run, written as JSON, read back alike.

Each wing has its own `Results`. `load(folder)` reads whichever the folder holds; a wing's own
`Results.load(folder)` says so to an editor, too.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from evidence.measurement import Measurement
from evidence.record import Record
from evidence.ruling import Ruling
from evidence.runtime import files
from evidence.runtime.config import typed

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scipy", "goodharts-jax")
# By the part of a results file that only this wing writes: where its `Results` is.
_KINDS = {
    "modes": "goodharts_jax.results",
    "families": "kubku.results",
    "systems": "epistemic.results",
    "completeness": "epistemic.completeness.results",
}


class Device(Record):
    """The accelerator and machine that JAX ran on."""

    platform: str
    """cpu, gpu or tpu."""
    kind: str
    """As JAX names it."""
    count: int
    """How many JAX saw."""
    cores: int | None
    """Of the machine."""
    machine: str
    """Architecture, such as x86_64."""
    cpu: str
    """The processor's name."""

    @classmethod
    def here(cls) -> Device:
        """This machine's."""
        import jax

        devices = jax.devices()
        return cls(
            platform=devices[0].platform,
            kind=devices[0].device_kind,
            count=len(devices),
            cores=os.cpu_count(),
            machine=platform.machine(),
            cpu=_cpu_name(),
        )


class Manifest(Record):
    """What made a result."""

    configuration: dict[str, Any]
    """Every setting, as plain data."""
    seeds: tuple[int, ...]
    """That random streams of the run started from."""
    versions: dict[str, str]
    """Of Python and the packages that numbers depend on."""
    device: Device
    """Where it ran."""
    commit: str | None
    """Of the source checkout, "+" appended where it had changes; None for an installed wheel."""
    finished: str
    """Time in UTC."""
    command: str | None = None
    """What was typed; None where a program of one's own found them."""

    @classmethod
    def now(cls, configuration: object, seeds: Sequence[int], **more: Any) -> Self:
        """The manifest of what has just been found.

        Args:
          configuration: the full configuration.
          seeds: every seed that a random stream started from.
          **more: fields that the wing's own manifest adds.
        """
        return cls(
            configuration=files.plain(configuration),
            seeds=tuple(seeds),
            versions={"python": platform.python_version(), **_versions()},
            device=Device.here(),
            commit=commit(),
            finished=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            command=typed.get(),
            **more,
        )


class Results(Record):
    """What every experiment's results have; a wing adds its own parts."""

    model_config = ConfigDict(title="Results")
    file: ClassVar[str] = "results.json"

    manifest: Manifest
    """What made them."""
    thesis: Ruling | None = None
    """The verdict, where the experiment judges a thesis."""
    warnings: tuple[str, ...] = ()
    """What a reader must know before quoting a number."""

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """The results in an experiment's output folder.

        Raises:
          FileNotFoundError: the folder holds no results.json.
          ValueError: the file is not what this wing writes; names the file and the place.
        """
        path = Path(folder) / cls.file
        return cls._read(path, _parsed(path))

    @classmethod
    def _read(cls, path: Path, data: object) -> Self:
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ValueError(f"{path} at {place}: {first['msg']}") from None

    def save(self, folder: str | Path) -> Path:
        """Write results.json, and results.parquet where polars is installed (extra `frames`)."""
        path = files.write_json(Path(folder) / self.file, self)
        try:
            frame = self.to_frame()
        except ImportError:
            return path
        files.write_by(path.with_suffix(".parquet"), frame.write_parquet)
        return path

    def measurements(self) -> Iterator[tuple[str, Measurement]]:
        """Every named Measurement with its place, such as `modes.proxy.intervals.selectivity`;
        lists are details and left out.
        """
        return _measurements(self, ())

    def to_frame(self, library: str = "polars") -> Any:
        """The measurements as a table with the columns place, name, value, low, high, n, unit and
        method.

        Args:
          library: "polars" or "pandas".

        Raises:
          ImportError: the library is not installed; says how to install it.
        """
        found = [(*place.rpartition(".")[::2], measured) for place, measured in self.measurements()]
        columns: dict[str, list[Any]] = {
            "place": [place for place, _, _ in found],
            "name": [name for _, name, _ in found],
        }
        for field in Measurement.__dataclass_fields__:
            columns[field] = [getattr(measured, field) for _, _, measured in found]
        try:
            frames = importlib.import_module(library)
        except ImportError:
            raise ImportError(
                f"to_frame needs {library}: pip install {library}, or 'goodharts-jax[frames]'"
            ) from None
        return frames.DataFrame(columns)


def load(folder: str | Path) -> Results:
    """The results that an experiment left in `folder`, as its wing's own type.

    Raises:
      FileNotFoundError: the folder holds no results.json.
      ValueError: the file is no experiment's results; names the file and the place.
    """
    path = Path(folder) / Results.file
    data = _parsed(path)
    for part, module in _KINDS.items():
        if part in data:
            kind: type[Results] = importlib.import_module(module).Results
            return kind._read(path, data)
    raise ValueError(f"{path}: no experiment writes results with only {', '.join(data)}")


def _parsed(path: Path) -> dict[str, object]:
    if not path.exists():
        raise FileNotFoundError(
            f"{path} does not exist; is {path.parent} the output folder of a run?"
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    # Not UTF-8, not JSON, or a number of more digits or lists nested deeper than Python takes.
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON ({error})") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: a JSON object is needed")
    return data


def _measurements(node: Any, place: tuple[str, ...]) -> Iterator[tuple[str, Measurement]]:
    if isinstance(node, Measurement):
        yield ".".join(place), node
    elif isinstance(node, Mapping):
        for name, entry in node.items():
            yield from _measurements(entry, (*place, str(name)))
    elif isinstance(node, BaseModel):
        for name in type(node).model_fields:
            yield from _measurements(getattr(node, name), (*place, name))


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@cache
def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


@cache
def commit() -> str | None:
    """The commit of the source checkout, '+' appended where it has changes; None in a wheel."""
    checkout = Path(__file__).parents[1]
    if not (checkout / ".git").exists():  # or it would be that of what an environment lies in
        return None

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.check_output(command, cwd=checkout, text=True, stderr=subprocess.DEVNULL)

    try:
        return git("rev-parse", "HEAD").strip() + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None
