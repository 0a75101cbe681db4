"""The kept result files as objects that remember which of their numbers were quoted.

A template reads a number through a `Node`. What it prints is noted by file and place, and
`Quoted.sources` names those places, so that no page can quote a number without its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"

Place = tuple[str, ...]
"""A file's path under the repository, then the keys that lead to a number in it."""


class Quoted:
    """The places that were quoted since they were last named."""

    def __init__(self) -> None:
        self.places: list[Place] = []

    def note(self, place: Place) -> None:
        """Remember a place once; a key that is no plain word stands as `*`."""
        place = (place[0], *("*" if re.search(r"[,.{}`]", key) else key for key in place[1:]))
        if place not in self.places:
            self.places.append(place)

    def sources(self) -> str:
        """Markdown that names the places quoted since the last call, in small print.

        Places that differ in one key are written as one: `modes.{proxy,ground_truth}.runs`.

        Raises:
          ValueError: nothing was quoted, so that the line would say nothing.
        """
        if not self.places:
            raise ValueError("sources() without a number quoted before it")
        named: dict[str, list[str]] = {}
        for file, *keys in _joined(self.places):
            named.setdefault(file, []).append(".".join(_starred(file, keys)))
        self.places = []
        listed = "; ".join(
            f"`{file}` " + ", ".join(f"`{place}`" if place else "as a whole" for place in places)
            for file, places in named.items()
        )
        return f"<sub>Source: {listed}</sub>"


def _joined(places: list[Place]) -> list[Place]:
    """Places with those that differ in exactly one key joined, until no two do."""
    found = list(places)
    merged = True
    while merged:
        merged = False
        for position in range(1, max(map(len, found))):
            groups: dict[Place, list[str]] = {}
            for place in found:
                if len(place) > position:
                    rest = (*place[:position], "", *place[position + 1 :])
                    groups.setdefault(rest, []).append(place[position])
            short = [place for place in found if len(place) <= position]
            joined = [
                (*rest[:position], _either(keys), *rest[position + 1 :])
                for rest, keys in groups.items()
            ]
            merged = merged or len(short) + len(joined) < len(found)
            found = short + joined
    return found


def _either(keys: list[str]) -> str:
    parts = dict.fromkeys(part for key in keys for part in key.strip("{}").split(","))
    if "*" in parts:
        return "*"
    return next(iter(parts)) if len(parts) == 1 else "{" + ",".join(parts) + "}"


def _starred(file: str, keys: list[str]) -> list[str]:
    """Keys with `*` where a choice of several names every key that there is."""
    found = list(keys)
    for position, key in enumerate(keys):
        if key.count(",") < 2:
            continue
        parents = [data for _, data in look(file, ".".join(keys[:position]))]
        named = set(key.strip("{}").split(","))
        if all(set(map(str, _options(parent))) == named for parent in parents):
            found[position] = "*"
    return found


def _options(data: Any) -> list[Any]:
    return list(range(len(data))) if isinstance(data, list) else list(data)


class Node:
    """A part of a result file.

    Keys are read as attributes or in brackets; entries of a list by their position, or by
    `one(name=value)`.
    """

    def __init__(self, data: Any, place: Place, quoted: Quoted) -> None:
        self._data, self._place, self._quoted = data, place, quoted

    def __getitem__(self, key: str | int) -> Node:
        try:
            data = self._data[key]
        except (KeyError, IndexError, TypeError):
            raise KeyError(f"{'.'.join(map(str, self._place))} has no {key!r}") from None
        return Node(data, (*self._place, str(key)), self._quoted)

    def __getattr__(self, key: str) -> Node:
        if key.startswith("__"):
            raise AttributeError(key)
        return self[key]

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __len__(self) -> int:
        return len(self._data)

    def __iter__(self) -> Iterator[Any]:
        """The entries of a list; the keys of a mapping."""
        if isinstance(self._data, dict):
            return iter(self._data)
        return (self[position] for position in range(len(self._data)))

    def items(self) -> Iterator[tuple[str, Node]]:
        """The entries of a mapping by key."""
        return ((key, self[key]) for key in self._data)

    def one(self, **wanted: Any) -> Node:
        """The entry of a list whose fields have these values.

        Raises:
          KeyError: no entry has them, or several do.
        """
        found = [
            position
            for position, entry in enumerate(self._data)
            if all(entry.get(name) == value for name, value in wanted.items())
        ]
        if len(found) != 1:
            raise KeyError(f"{'.'.join(self._place)}: {len(found)} entries with {wanted}")
        return self[found[0]]

    @property
    def raw(self) -> Any:
        """The plain data, noted as quoted."""
        self._quoted.note(self._place)
        return self._data

    @property
    def peek(self) -> Any:
        """The plain data, to choose by and not to print."""
        return self._data

    def __str__(self) -> str:
        """Text or a whole number as it stands; anything else needs a filter."""
        if isinstance(self._data, bool) or not isinstance(self._data, str | int):
            raise TypeError(f"{'.'.join(self._place)} is printed without saying how")
        return f"{self.raw:,}" if isinstance(self._data, int) else str(self.raw)


def kept(name: str, quoted: Quoted) -> Node:
    """A result file by its name under benchmarks/results: `goodhart`, `epistemic/rivers`, `oracle`;
    or a file of settings, such as `conf/thesis/kubku.yaml`.

    Raises:
      FileNotFoundError: neither NAME/results.json nor NAME.json is there.
    """
    folder = RESULTS / name / "results.json"
    path = folder if folder.exists() else RESULTS / f"{name}.json"
    if name.endswith((".yaml", ".json")):
        path = ROOT / name
    return Node(_read(path), (str(path.relative_to(ROOT)),), quoted)


@cache
def _read(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return yaml.safe_load(text) if path.suffix == ".yaml" else json.loads(text)


def look(file: str, place: str) -> Iterator[tuple[str, Any]]:
    """Every number of a result file that a source line names, with its place.

    Args:
      file: as the source line names it, relative to the repository.
      place: keys joined by points; `{a,b}` stands for each of them, `*` for every key.

    Raises:
      KeyError: the file has no such place.
    """
    found: list[tuple[Place, Any]] = [((), _read(ROOT / file))]
    for key in filter(None, _keys(place)):
        following = []
        for before, data in found:
            names = {str(option): option for option in _options(data)}
            wanted = list(names) if key == "*" else key.strip("{}").split(",")
            for name in wanted:
                if name not in names:
                    raise KeyError(f"{file}: {'.'.join(before)} has no {name!r}")
                following.append(((*before, name), data[names[name]]))
        found = following
    return ((".".join(keys), data) for keys, data in found)


def _keys(place: str) -> list[str]:
    """The keys of a place; a point between braces does not part."""
    keys, depth = [""], 0
    for letter in place:
        depth += (letter == "{") - (letter == "}")
        if letter == "." and not depth:
            keys.append("")
        else:
            keys[-1] += letter
    return keys
