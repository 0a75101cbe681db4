"""Made-up rivers: graphs of any size with known truth and planted violations.

Names mean nothing outside the graph, so that no model can have learnt the answers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from epistemic.constraints import Constraint, Constraints
from epistemic.domain import Domain, PredicateSettings, spoken
from epistemic.draws import Draws
from epistemic.graph import TYPE, Graph, literal
from epistemic.oracle import with_vocabulary

BASE = "https://example.org/synthetic#"
_PER_RIVER = 8
_PER_WATER = 50
_COUNTRIES = 200


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
    """One of each sort that a table of rivers needs: counts, classes, numbers, pairs."""
    river, water, country = (BASE + name for name in ("River", "Water", "Country"))
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    rules = [
        Constraint("max_count", BASE + "mouth", ("1",), (river,)),
        Constraint("class", BASE + "mouth", (water,), (river,)),
        Constraint("max_count", BASE + "length", ("1",), (river,)),
        Constraint("datatype", BASE + "length", (integer,), (river,)),
        Constraint("min_exclusive", BASE + "length", (literal(0),), (river,)),
        Constraint("less_than", BASE + "mouthElevation", (BASE + "sourceElevation",), (river,)),
        Constraint("class", BASE + "country", (country,), (river,)),
        Constraint("max_count", BASE + "tributaryOf", ("1",), (river,)),
        Constraint("asymmetric", BASE + "tributaryOf"),
        Constraint("disjoint", country, (river,)),
        Constraint("disjoint", river, (water,)),
    ]
    return Constraints(tuple(sorted(rules)), complete=frozenset({water, country}))


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
        [f"{BASE}river-{i:07d}" for i in range(rivers)]
        + [f"{BASE}water-{i:07d}" for i in range(waters)]
        + [f"{BASE}country-{i:03d}" for i in range(countries)]
    )
    predicates = ["mouth", "length", "mouthElevation", "sourceElevation", "country", "tributaryOf"]
    numbers = np.arange(-10, 9_000)
    texts = [
        *names,
        *(literal(int(number)) for number in numbers),
        *(BASE + name for name in (*predicates, "River", "Water", "Country")),
        TYPE,
    ]
    at = {
        text: i
        for i, text in enumerate(texts[len(names) + len(numbers) :], len(names) + len(numbers))
    }
    who = np.arange(rivers)
    water, country = rivers + np.arange(waters), rivers + waters + np.arange(countries)

    def number(values: np.ndarray) -> np.ndarray:
        return len(names) + values - numbers[0]

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
    columns = [
        (who, at[TYPE], np.full(rivers, at[BASE + "River"])),
        (water, at[TYPE], np.full(waters, at[BASE + "Water"])),
        (country, at[TYPE], np.full(countries, at[BASE + "Country"])),
        (who, at[BASE + "mouth"], mouth),
        (doubled, at[BASE + "mouth"], second),
        (who, at[BASE + "length"], number(1 + draws.below(7_000, rivers))),
        (who, at[BASE + "mouthElevation"], number(low)),
        (who, at[BASE + "sourceElevation"], number(high)),
        (who, at[BASE + "country"], homes[0]),
        (who, at[BASE + "country"], homes[1]),
        (flows, at[BASE + "tributaryOf"], main[1:]),
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
    """A made-up graph as a domain, spoken of by its predicates' labels."""
    made = make_synthetic(triples, seed)
    graph = with_vocabulary(made.graph, made.constraints)
    predicates = {
        name: spoken(name, PredicateSettings(iri=BASE + name), made.constraints)
        for name in ("mouth", "length", "mouthElevation", "sourceElevation", "tributaryOf")
    }
    return Domain("synthetic", graph, made.constraints, predicates)
