"""Made-up rivers: graphs of any size with known truth and planted violations.

Names mean nothing outside the graph, so that no model can have learnt the answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

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


_NUMBERS = np.arange(-10, 9_000)
_TENTHS = np.arange(1_000, 10_000)
# How predicates are spoken of that the words made from a label don't suit.
_SAID = {
    "tributaryOf": PredicateSettings(
        iri=BASE + "tributaryOf",
        questions=("Is {s} a tributary of {o}?", "Does {s} flow into {o}?"),
        facts=("{s} is a tributary of {o}.", "{s} flows into {o}."),
        denials=("{s} is not a tributary of {o}.", "{s} does not flow into {o}."),
    ),
    "meets": PredicateSettings(
        iri=BASE + "meets",
        complete=True,
        questions=("Does {s} meet {o}?", "Do {s} and {o} meet?"),
        facts=("{s} meets {o}.", "{s} and {o} meet."),
        denials=("{s} does not meet {o}.", "{s} and {o} do not meet."),
        rules={
            "symmetric": "If one river meets another, then the other meets it.",
            "irreflexive": "No river meets itself.",
        },
    ),
    "mouthElevation": PredicateSettings(iri=BASE + "mouthElevation", unit="m"),
    "sourceElevation": PredicateSettings(iri=BASE + "sourceElevation", unit="m"),
}


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


@dataclass(frozen=True)
class _Terms:
    """The terms of a made-up graph: things, then numbers, then words; each by its place.

    Attributes:
      rivers, waters, countries: how many there are; there are as many stations as rivers.
    """

    rivers: int
    waters: int
    countries: int

    @classmethod
    def of_size(cls, triples: int) -> _Terms:
        """For a graph of about so many triples."""
        rivers = triples // _PER_RIVER
        return cls(rivers, max(2, rivers // _PER_WATER), min(_COUNTRIES, max(2, rivers // 4)))

    @cached_property
    def names(self) -> list[str]:
        """Of things."""
        return (
            [f"{BASE}River-{i:07d}" for i in range(self.rivers)]
            + [f"{BASE}Water-{i:07d}" for i in range(self.waters)]
            + [f"{BASE}Country-{i:03d}" for i in range(self.countries)]
            + [f"{BASE}Station-{i:07d}" for i in range(self.rivers)]
            + [_zone(i) for i in range(_ZONES)]
        )

    @cached_property
    def texts(self) -> list[str]:
        """Of all terms."""
        return [
            *self.names,
            *(literal(int(number)) for number in _NUMBERS),
            *(_decimal(int(number)) for number in _TENTHS),
            *self.words,
        ]

    @property
    def words(self) -> tuple[str, ...]:
        """Predicates and classes."""
        return (*(BASE + name for name in (*_PREDICATES, *_CLASSES)), TYPE)

    @cached_property
    def at(self) -> dict[str, int]:
        """Word -> its place."""
        first = len(self.names) + len(_NUMBERS) + len(_TENTHS)
        return {word: first + i for i, word in enumerate(self.words)}

    @property
    def river(self) -> np.ndarray:
        return np.arange(self.rivers)

    @property
    def water(self) -> np.ndarray:
        return self.rivers + np.arange(self.waters)

    @property
    def country(self) -> np.ndarray:
        return self.rivers + self.waters + np.arange(self.countries)

    @property
    def station(self) -> np.ndarray:
        return self.rivers + self.waters + self.countries + np.arange(self.rivers)

    @property
    def zone(self) -> np.ndarray:
        return 2 * self.rivers + self.waters + self.countries + np.arange(_ZONES)

    def number(self, values: np.ndarray) -> np.ndarray:
        """Places of whole numbers."""
        return len(self.names) + values - _NUMBERS[0]

    def tenth(self, low: int, high: int, draws: Draws) -> np.ndarray:
        """For each river a number between two, with one digit after the point that isn't 0."""
        drawn = 10 * (low + draws.below(high - low, self.rivers)) + 1
        drawn += draws.below(9, self.rivers)
        return len(self.names) + len(_NUMBERS) + drawn - _TENTHS[0]


class _Rivers(NamedTuple):
    """What is drawn of rivers before they are put down as triples.

    Attributes:
      mouth, low, high: i64[rivers], the mouth and the elevations of mouth and source.
      homes: i64[2, rivers], countries.
      main: i64[rivers], into which river each flows.
      met: i64[rivers], which river each meets.
      tide: bool[rivers], whether its station is of the narrower class.
      doubled, inverted: rivers with two mouths, and with a mouth above their source.
      second: other mouths of the doubled ones.
    """

    mouth: np.ndarray
    low: np.ndarray
    high: np.ndarray
    homes: np.ndarray
    main: np.ndarray
    met: np.ndarray
    tide: np.ndarray
    doubled: np.ndarray
    inverted: np.ndarray
    second: np.ndarray


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
    draws, terms, rules = Draws(seed), _Terms.of_size(triples), constraints()
    made = _rivers(terms, draws, planted)
    codes = np.concatenate(
        [
            np.stack([subjects, np.full(len(subjects), terms.at[predicate]), objects], axis=1)
            for subjects, predicate, objects in _columns(terms, made, draws)
        ]
    )
    broken = {"max_count(mouth": made.doubled, "less_than": made.inverted}
    return Synthetic(
        Graph.from_codes(terms.texts, codes),
        rules,
        {
            next(rule.name for rule in rules.rules if rule.name.startswith(start)): [
                terms.names[i] for i in subjects
            ]
            for start, subjects in broken.items()
        },
    )


def _rivers(terms: _Terms, draws: Draws, planted: float) -> _Rivers:
    who, rivers = terms.river, terms.rivers
    mouth = terms.water[draws.below(terms.waters, rivers)]
    low = draws.below(2_000, rivers)
    high = low + 1 + draws.below(3_000, rivers)
    broken = np.flatnonzero(draws.uniform(rivers) < planted)
    doubled, inverted = broken[::2], broken[1::2]
    low[inverted] = high[inverted] + 1 + draws.below(100, len(inverted))
    homes = terms.country[draws.below(terms.countries, 2 * rivers)].reshape(2, rivers)
    # A tributary flows into a river with a lower number, so that no cycle arises.
    main = (who * draws.uniform(rivers)).astype(np.int64)
    second = terms.water[(mouth[doubled] - terms.water[0] + 1) % terms.waters]
    # Two rivers meet in a ring with steps of many sizes, and none meets itself.
    met = (who + 1 + draws.below(max(1, rivers - 1), rivers)) % rivers
    tide = draws.uniform(rivers) < 0.5
    return _Rivers(mouth, low, high, homes, main, met, tide, doubled, inverted, second)


class _Column(NamedTuple):
    """Triples of one predicate: subjects i64[n], its text, objects i64[n]."""

    subjects: np.ndarray
    predicate: str
    objects: np.ndarray


def _columns(terms: _Terms, made: _Rivers, draws: Draws) -> list[_Column]:
    """All triples; what no other feature needs is drawn here."""
    who, rivers, station = terms.river, terms.rivers, terms.station

    def of_class(members: np.ndarray, name: str) -> _Column:
        return _Column(members, TYPE, np.full(len(members), terms.at[BASE + name]))

    def column(subjects: np.ndarray, name: str, objects: np.ndarray) -> _Column:
        return _Column(subjects, BASE + name, objects)

    kinds = np.where(made.tide, terms.at[BASE + "TideStation"], terms.at[BASE + "Station"])
    return [
        of_class(who, "River"),
        of_class(terms.water, "Water"),
        of_class(terms.country, "Country"),
        of_class(terms.zone, "Zone"),
        _Column(station, TYPE, kinds),
        column(who, "mouth", made.mouth),
        column(made.doubled, "mouth", made.second),
        column(who, "length", terms.number(1_000 + draws.below(7_000, rivers))),
        column(who, "mouthElevation", terms.number(made.low)),
        column(who, "sourceElevation", terms.number(made.high)),
        column(who, "country", made.homes[0]),
        column(who, "country", made.homes[1]),
        column(who[1:], "tributaryOf", made.main[1:]),
        column(who, "width", terms.number(2_000 + draws.below(4_001, rivers))),
        column(who, "flow", terms.tenth(300, 800, draws)),
        column(who, "peakFlow", terms.tenth(100, 1_000, draws)),
        column(who, "zone", terms.zone[draws.below(_ALLOWED_ZONES, rivers)]),
        column(who, "formerZone", terms.zone[draws.below(_ZONES, rivers)]),
        # Half of the rivers have two stations and half have none.
        column(who // 2 * 2, "station", station),
        column(station, "district", terms.zone[draws.below(_ZONES, rivers)]),
        column(who, "meets", made.met),
    ]


def synthetic_domain(triples: int, seed: int = 0) -> Domain:
    """A made-up graph as a domain, in which every sort of card can be drawn."""
    made = make_synthetic(triples, seed)
    graph = with_vocabulary(made.graph, made.constraints)
    predicates = {
        name: in_words(
            name,
            _SAID.get(name, PredicateSettings(iri=BASE + name)),
            made.constraints,
            graph=graph,
        )
        for name in _PREDICATES
    }
    return Domain("synthetic", graph, made.constraints, predicates)
