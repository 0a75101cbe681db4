"""Made-up rivers: graphs of any size with known truth and planted violations.

Names mean nothing outside the graph, so that no model can have learnt the answers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from epistemic.domain import Domain
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints
from epistemic.logic.draws import Draws
from epistemic.logic.graph import TYPE, Graph
from epistemic.logic.kinds import (
    Asymmetric,
    Constraint,
    Datatype,
    Disjoint,
    In,
    InverseFunctional,
    Irreflexive,
    LessThan,
    MaxCount,
    MaxExclusive,
    MaxInclusive,
    MinExclusive,
    MinInclusive,
    ValueClass,
)
from epistemic.logic.terms import literal
from epistemic.predicates import PredicateSettings, in_words

BASE = "https://example.org/synthetic#"
_PER_RIVER = 17
_PER_WATER = 50
_COUNTRIES = 200
_ZONES = 12
_ALLOWED_ZONES = 8
_PREDICATES = (
    "mouth", "length", "mouthElevation", "sourceElevation", "tributaryOf", "country", "width",
    "flow", "peakFlow", "zone", "formerZone", "station", "district", "meets",
)  # fmt: skip
_CLASSES = ("River", "Water", "Country", "Zone", "Station", "TideStation")


class Synthetic(NamedTuple):
    """A made-up graph.

    Attributes:
      graph: about as many triples as asked for.
      constraints: those it is meant to keep.
      planted: constraint name -> subjects made to break it.
    """

    graph: Graph
    constraints: Constraints
    planted: dict[str, list[str]]


def constraints() -> Constraints:
    """One of each sort that can be broken: counts, classes, numbers, lists, pairs."""
    river, water, country, zone, station, tide = (BASE + name for name in _CLASSES)
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    zones = tuple(sorted(_zone(i) for i in range(_ALLOWED_ZONES)))
    rules: list[Constraint] = [
        MaxCount(BASE + "mouth", ("1",), (river,)),
        ValueClass(BASE + "mouth", (water,), (river,)),
        MaxCount(BASE + "length", ("1",), (river,)),
        Datatype(BASE + "length", (integer,), (river,)),
        MinExclusive(BASE + "length", (literal(0),), (river,)),
        LessThan(BASE + "mouthElevation", (BASE + "sourceElevation",), (river,)),
        ValueClass(BASE + "country", (country,), (river,)),
        MaxCount(BASE + "tributaryOf", ("1",), (river,)),
        Asymmetric(BASE + "tributaryOf"),
        MinInclusive(BASE + "width", (literal(2_000),), (river,)),
        MaxInclusive(BASE + "width", (literal(6_000),), (river,)),
        MinExclusive(BASE + "flow", (literal(300),), (river,)),
        MaxExclusive(BASE + "flow", (literal(800),), (river,)),
        In(BASE + "zone", zones, (river,)),
        InverseFunctional(BASE + "station"),
        Irreflexive(BASE + "meets"),
        Disjoint.of(country, river),
        Disjoint.of(river, water),
        Disjoint.of(river, station),
        Disjoint.of(station, zone),
        ValueClass(BASE + "zone", (zone,), (river,)),
        ValueClass(BASE + "station", (station,), (river,)),
    ]
    return Constraints(
        tuple(sorted(rules)),
        symmetric=frozenset({BASE + "meets"}),
        subclass=frozenset({(tide, station)}),
        complete=frozenset({water, country}),
    )


def _decimal(tenths: int) -> str:
    return f'"{tenths // 10}.{tenths % 10}"^^<http://www.w3.org/2001/XMLSchema#decimal>'


def _zone(number: int) -> str:
    return f"{BASE}Zone-{number:02d}"


def make_synthetic(triples: int, seed: int = 0, planted: float = 0.0) -> Synthetic:
    """Make a graph of about `triples` triples; the same for a seed on every machine.

    Args:
      triples: its size, 100 or more.
      seed: of its draws.
      planted: share of rivers that break a constraint, half with two mouths and half with a
        mouth above their source.
    """
    if triples < 100:
        raise ValueError(f"triples={triples}: a synthetic graph needs 100 or more")
    draws = Draws(seed)
    rivers = triples // _PER_RIVER
    waters = max(2, rivers // _PER_WATER)
    countries = min(_COUNTRIES, max(2, rivers // 4))
    names = (
        [f"{BASE}River-{i:07d}" for i in range(rivers)]
        + [f"{BASE}Water-{i:07d}" for i in range(waters)]
        + [f"{BASE}Country-{i:03d}" for i in range(countries)]
        + [f"{BASE}Station-{i:07d}" for i in range(rivers)]
        + [_zone(i) for i in range(_ZONES)]
    )
    numbers = np.arange(-10, 9_000)
    tenths = np.arange(1_000, 10_000)
    texts = [
        *names,
        *(literal(int(number)) for number in numbers),
        *(_decimal(int(number)) for number in tenths),
        *(BASE + name for name in (*_PREDICATES, *_CLASSES)),
        TYPE,
    ]
    vocabulary = len(texts) - len(_PREDICATES) - len(_CLASSES) - 1
    at = {text: i for i, text in enumerate(texts[vocabulary:], vocabulary)}
    who = np.arange(rivers)
    water, country = rivers + np.arange(waters), rivers + waters + np.arange(countries)
    station = rivers + waters + countries + np.arange(rivers)
    zone = 2 * rivers + waters + countries + np.arange(_ZONES)

    def number(values: np.ndarray) -> np.ndarray:
        return len(names) + values - numbers[0]

    def tenth(low: int, high: int) -> np.ndarray:
        """Numbers between two, with one digit after the point that isn't 0."""
        drawn = 10 * (low + draws.below(high - low, rivers)) + 1 + draws.below(9, rivers)
        return len(names) + len(numbers) + drawn - tenths[0]

    mouth = water[draws.below(waters, rivers)]
    low = draws.below(2_000, rivers)
    high = low + 1 + draws.below(3_000, rivers)
    broken = np.flatnonzero(draws.uniform(rivers) < planted)
    doubled, inverted = broken[::2], broken[1::2]
    low[inverted] = high[inverted] + 1 + draws.below(100, len(inverted))
    homes = country[draws.below(countries, 2 * rivers)].reshape(2, rivers)
    # A tributary flows into a river with a lower number, so that no cycle arises.
    main = (who * draws.uniform(rivers)).astype(np.int64)
    flows = who[1:]
    second = water[(mouth[doubled] - water[0] + 1) % waters]
    # Two rivers meet in a ring with steps of many sizes, and none meets itself.
    met = (who + 1 + draws.below(max(1, rivers - 1), rivers)) % rivers
    tide = draws.uniform(rivers) < 0.5
    columns = [
        (who, at[TYPE], np.full(rivers, at[BASE + "River"])),
        (water, at[TYPE], np.full(waters, at[BASE + "Water"])),
        (country, at[TYPE], np.full(countries, at[BASE + "Country"])),
        (zone, at[TYPE], np.full(_ZONES, at[BASE + "Zone"])),
        (station, at[TYPE], np.where(tide, at[BASE + "TideStation"], at[BASE + "Station"])),
        (who, at[BASE + "mouth"], mouth),
        (doubled, at[BASE + "mouth"], second),
        (who, at[BASE + "length"], number(1_000 + draws.below(7_000, rivers))),
        (who, at[BASE + "mouthElevation"], number(low)),
        (who, at[BASE + "sourceElevation"], number(high)),
        (who, at[BASE + "country"], homes[0]),
        (who, at[BASE + "country"], homes[1]),
        (flows, at[BASE + "tributaryOf"], main[1:]),
        (who, at[BASE + "width"], number(2_000 + draws.below(4_001, rivers))),
        (who, at[BASE + "flow"], tenth(300, 800)),
        (who, at[BASE + "peakFlow"], tenth(100, 1_000)),
        (who, at[BASE + "zone"], zone[draws.below(_ALLOWED_ZONES, rivers)]),
        (who, at[BASE + "formerZone"], zone[draws.below(_ZONES, rivers)]),
        # Half of the rivers have two stations and half have none.
        (who // 2 * 2, at[BASE + "station"], station),
        (station, at[BASE + "district"], zone[draws.below(_ZONES, rivers)]),
        (who, at[BASE + "meets"], met),
    ]
    codes = np.concatenate([np.stack([s, np.full(len(s), p), o], axis=1) for s, p, o in columns])
    rules = constraints()
    by_kind = {rule.name: rule for rule in rules.rules}
    return Synthetic(
        Graph.from_codes(texts, codes),
        rules,
        {
            name: [names[i] for i in subjects]
            for name, subjects in (
                (next(n for n in by_kind if n.startswith("max_count(mouth")), doubled),
                (next(n for n in by_kind if n.startswith("less_than")), inverted),
            )
        },
    )


def synthetic_domain(triples: int, seed: int = 0) -> Domain:
    """A made-up graph as a domain, in which every sort of card can be drawn."""
    made = make_synthetic(triples, seed)
    graph = with_vocabulary(made.graph, made.constraints)
    said: dict[str, dict[str, Any]] = {
        "tributaryOf": {
            "questions": ("Is {s} a tributary of {o}?", "Does {s} flow into {o}?"),
            "facts": ("{s} is a tributary of {o}.", "{s} flows into {o}."),
            "denials": ("{s} is not a tributary of {o}.", "{s} does not flow into {o}."),
        },
        "meets": {
            "complete": True,
            "questions": ("Does {s} meet {o}?", "Do {s} and {o} meet?"),
            "facts": ("{s} meets {o}.", "{s} and {o} meet."),
            "denials": ("{s} does not meet {o}.", "{s} and {o} do not meet."),
            "rules": {
                "symmetric": "If one river meets another, then the other meets it.",
                "irreflexive": "No river meets itself.",
            },
        },
        "mouthElevation": {"unit": "m"},
        "sourceElevation": {"unit": "m"},
    }
    predicates = {
        name: in_words(
            name,
            PredicateSettings(iri=BASE + name, **said.get(name, {})),
            made.constraints,
            graph=graph,
        )
        for name in _PREDICATES
    }
    return Domain("synthetic", graph, made.constraints, predicates)
