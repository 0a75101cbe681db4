"""Files: written whole or not at all, and read back with the place of whatever is wrong.

Of several processes the first alone writes; what the others are told to write, they drop.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import importlib.util
import io
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import yaml
from pydantic import BaseModel


def file_digest(path: str | Path) -> str:
    """SHA-256 of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def large_file_digest(path: str | Path) -> str:
    """`file_digest`, worked out once while a file stays as it is."""
    about = os.stat(path)
    return _digest_of(str(path), about.st_size, about.st_mtime_ns)


@cache
def _digest_of(path: str, size: int, changed: int) -> str:
    return file_digest(path)


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
    """Plain JSON data: arrays to lists, objects with named fields to objects, NaN and infinities to
    null.
    """
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(entry) for name, entry in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(entry) for entry in value]
    if hasattr(value, "__array__"):
        return plain(np.asarray(value).tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Path):
        return str(value)
    return value


def is_first_process() -> bool:
    """Whether this process is the one that writes files and shows progress."""
    # One that has not loaded JAX can't have joined others.
    jax = sys.modules.get("jax")
    return jax is None or not jax.distributed.is_initialized() or jax.process_index() == 0


def write_text(path: str | Path, text: str) -> Path:
    """Write a file so that a reader sees the old content or the new, never a part."""
    return write_bytes(path, text.encode())


def write_by(path: str | Path, write: Callable[[BinaryIO], object]) -> Path:
    """Likewise, what another library writes into a file."""
    stream = io.BytesIO()
    write(stream)
    return write_bytes(path, stream.getvalue())


def write_bytes(path: str | Path, content: bytes) -> Path:
    """As `write_text`, of what is encoded already."""
    path = Path(path)
    if not is_first_process():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with _naming(path):
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


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system: a full disk names none, and what is written first
    goes by another name.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise


@contextmanager
def alone(folder: str | Path) -> Iterator[None]:
    """Have a folder for this run alone; a kill gives it back, too.

    Raises:
      ValueError: another run is at work in it.
    """
    if not is_first_process():
        yield
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(
                f"{folder}: another run is at work in this folder; wait for its end, or give "
                "another folder"
            ) from None
        except OSError:  # a file system without locks on folders
            pass
        yield
    finally:
        os.close(descriptor)


def write_json(path: str | Path, value: object) -> Path:
    """Write a value as plain JSON, atomically; see `plain`."""
    return write_text(path, json.dumps(plain(value), indent=1, allow_nan=False) + "\n")


def append_jsonl(path: str | Path, record: Mapping[str, object]) -> None:
    """Append one record as one line: a kill or a full disk can cut the last line, never another."""
    path = Path(path)
    if not is_first_process():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(plain(record), allow_nan=False) + "\n"
    with _naming(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            content = line.encode()
            # A disk that fills up takes a part and says so only to what comes after.
            while content:
                content = content[os.write(descriptor, content) :]
        finally:
            os.close(descriptor)


def read_jsonl(path: str | Path, required: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    """The records of a JSONL file; see `numbered_jsonl`."""
    return (record for _, record in numbered_jsonl(path, required))


class Numbered(NamedTuple):
    """A record of a file and the number of its line, from 1."""

    number: int
    record: dict[str, Any]


def numbered_jsonl(path: str | Path, required: tuple[str, ...] = ()) -> Iterator[Numbered]:
    """The records of a JSONL file; empty lines are passed over.

    Raises:
      ValueError: a line is not a JSON object or lacks a required field; names file, line, field.
    """
    with open(path, "rb") as file:
        for number, content in enumerate(file, start=1):
            try:
                line = content.decode()
                if not line.strip():
                    continue
                record = json.loads(line)
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 ({error.reason})") from None
            # ValueError: not JSON, or a number of more digits than Python takes.
            except (ValueError, RecursionError) as error:
                why = getattr(error, "msg", str(error))
                raise ValueError(f"{path}, line {number}: not JSON ({why})") from None
            if not isinstance(record, dict):
                raise ValueError(
                    f"{path}, line {number}: a JSON object is needed, not {line[:40]!r}"
                )
            for field in required:
                if field not in record:
                    raise ValueError(f"{path}, line {number}: the field {field!r} is missing")
            yield Numbered(number, record)


def read_plain(path: str | Path) -> dict[str, Any]:
    """What a file of settings holds, JSON or YAML, which is read as data and no more.

    Raises:
      ValueError: it holds no settings; names the file.
    """
    path = Path(path)
    try:
        text = path.read_bytes().decode()
        data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
        json.dumps(data, default=str, skipkeys=True)  # refuses what holds itself, as YAML can
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        why = str(error).splitlines() or [type(error).__name__]
        raise ValueError(f"{path}: garbled ({why[0]})") from None
    if not isinstance(data, dict):
        raise ValueError(f"{path}: garbled (it holds no settings)")
    return data
