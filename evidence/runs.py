"""Run records: the manifest, files written whole or not at all, and reading them back.

Of several processes the first alone writes; what the others are told to write, they drop.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jsonschema
import numpy as np

from evidence.devices import is_first_process
from evidence.stats import Measurement

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "numpy", "scipy", "goodharts-jax")


def manifest(config: Mapping[str, Any], seeds: list[int], **extra: Any) -> dict[str, Any]:
    """What made a result: configuration, seeds, versions, device, commit, time.

    Args:
      config: the full configuration as plain data.
      seeds: every seed that a random stream of the run started from.
      **extra: entries of the experiment's own, such as wall times.
    """
    return {
        "configuration": plain(config),
        "seeds": list(seeds),
        "versions": {"python": platform.python_version(), **_versions()},
        "device": device(),
        "commit": _commit(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **plain(extra),
    }


@cache
def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def device() -> dict[str, Any]:
    """The accelerator and machine that JAX runs on."""
    devices = jax.devices()
    return {
        "platform": devices[0].platform,
        "kind": devices[0].device_kind,
        "count": len(devices),
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "cpu": _cpu_name(),
    }


@cache
def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


@cache
def _commit() -> str | None:
    """The commit of the source checkout, '+' appended where it has changes; None in a wheel."""

    def git(*arguments: str) -> str:
        here = Path(__file__).parent
        command = ["git", *arguments]
        return subprocess.check_output(command, cwd=here, text=True, stderr=subprocess.DEVNULL)

    try:
        return git("rev-parse", "HEAD").strip() + ("+" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def target_digest(target: str) -> str | None:
    """SHA-256 of the file behind a user's own "module:Name", None where no file can be found: what
    was computed by code that has changed since is not to be taken for what it would compute now.
    """
    try:
        found = importlib.util.find_spec(target.partition(":")[0])
    except (ImportError, ValueError):
        return None
    origin = found.origin if found is not None else None
    return file_digest(origin) if origin is not None and Path(origin).is_file() else None


def plain(value: Any) -> Any:
    """Plain JSON data: arrays to lists, Measurements to objects, NaN and infinities to null."""
    if isinstance(value, Measurement):
        return {name: plain(entry) for name, entry in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(entry) for entry in value]
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def write_text(path: str | Path, text: str) -> Path:
    """Write a file so that a reader sees the old content or the new, never a part."""
    return write_bytes(path, text.encode())


def write_bytes(path: str | Path, content: bytes) -> Path:
    """As `write_text`, of what is encoded already."""
    path = Path(path)
    if not is_first_process():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def write_json(path: str | Path, value: Any, schema: Mapping[str, Any] | None = None) -> Path:
    """Write plain data as JSON, atomically, validated first where a JSON Schema is given.

    Raises:
      ValueError: the data does not fit the schema; names the place.
    """
    data = plain(value)
    if schema is not None:
        error = jsonschema.exceptions.best_match(
            jsonschema.Draft202012Validator(schema).iter_errors(data)
        )
        if error is not None:
            raise ValueError(f"{Path(path).name} at {error.json_path}: {error.message}")
    return write_text(path, json.dumps(data, indent=1, allow_nan=False) + "\n")


def append_jsonl(path: str | Path, record: Mapping[str, Any]) -> None:
    """Append one record as one line, in one write: a kill can cut the last line, never another."""
    path = Path(path)
    if not is_first_process():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(plain(record), allow_nan=False) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read_jsonl(path: str | Path, required: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """The records of a JSONL file.

    Raises:
      ValueError: a line is not a JSON object or lacks a required field; names file, line, field.
    """
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"{path}, line {number}: not JSON ({error.msg})") from error
            if not isinstance(record, dict):
                raise ValueError(
                    f"{path}, line {number}: a JSON object is needed, not {line[:40]!r}"
                )
            for field in required:
                if field not in record:
                    raise ValueError(f"{path}, line {number}: the field {field!r} is missing")
            yield record


def load(folder: str | Path) -> dict[str, Any]:
    """The results that an experiment wrote into `folder`.

    Raises:
      FileNotFoundError: the folder holds no results.json.
    """
    path = Path(folder) / "results.json"
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; is {folder} the output folder of a run?")
    return json.loads(path.read_text(encoding="utf-8"))
