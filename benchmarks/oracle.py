"""The oracle beside rdflib and pyoxigraph, in one run: `python -m benchmarks.oracle`.

Every rival answers the same claims about the same synthetic rivers, on the same machine, one
after the other; each figure is the best of its repetitions. Writes benchmarks/results/oracle.json.
SHACL engines stand in `benchmarks.engines`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pyoxigraph
import rdflib

from benchmarks.shacl_engines import written
from epistemic.cards import write_cards
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.decks.synthetic import make_synthetic, synthetic_domain
from epistemic.logic.graph import Graph
from epistemic.logic.lookup import contains
from epistemic.logic.oracle import LARGEST_BATCH, Oracle
from epistemic.logic.terms import rdflib_term, split_literal
from evidence.results import Manifest
from evidence.runtime.files import write_json

RESULTS = Path(__file__).parent / "results" / "oracle.json"
SIZE = 245_000
CLAIMS = 1 << 19
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)


def best(run: Callable[[], Any], repeats: int = 3) -> float:
    """Seconds of the fastest of several runs, after one to warm up."""
    run()
    return min(_timed(run) for _ in range(repeats))


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def mixed_claims(graph: Graph, size: int, seed: int = 0) -> np.ndarray:
    """i32[size, 3]: half stated, half with the object of another triple of the predicate."""
    rng = np.random.default_rng(seed)
    claims = graph.triples[rng.integers(len(graph.triples), size=size)].copy()
    changed = np.arange(0, size, 2)
    for p in np.unique(claims[:, 1]):
        rows = changed[claims[changed, 1] == p]
        claims[rows, 2] = claims[rng.permutation(rows), 2]
    return claims


def index_bytes(oracle: Oracle) -> int:
    """Bytes of the device's arrays beside the term table: the hash table, groups and objects."""
    index = oracle.compiled.lookup
    parts = (index.slots, index.subject, index.predicate, index.start, index.objects)
    return sum(part.nbytes for part in parts)


def _contains(oracle: Oracle, claims: np.ndarray) -> None:
    found = [
        contains(oracle.compiled.lookup, jnp.asarray(claims[start : start + LARGEST_BATCH]))
        for start in range(0, len(claims), LARGEST_BATCH)
    ]
    jax.block_until_ready(found)


def integer_rates(triples: int, claims: int, repeats: int) -> dict[str, Any]:
    """Claims a second on integer ids, and what the index weighs, for one size of graph."""
    made = make_synthetic(triples)
    start = time.perf_counter()
    oracle = Oracle(made.graph, made.constraints)
    compiled_in = time.perf_counter() - start
    asked = mixed_claims(oracle.graph, claims)
    return {
        "triples": len(made.graph),
        "terms": len(oracle.graph.terms),
        "build_seconds": compiled_in,
        "membership_claims_per_second": claims / best(lambda: _contains(oracle, asked), repeats),
        "verdict_claims_per_second": claims / best(lambda: oracle.judge_ids(asked), repeats),
        "index_bytes_per_triple": index_bytes(oracle) / len(made.graph),
    }


def text_rates(oracle: Oracle, claims: np.ndarray) -> dict[str, float]:
    """Claims a second from texts, for the oracle and for membership in other engines."""
    terms = oracle.graph.terms
    texts = [(terms[s], terms[p], terms[o]) for s, p, o in claims.tolist()]
    lines = written(texts)
    few, fewer = texts[:20_000], texts[:2_000]
    theirs = oracle.graph.to_rdflib()
    store = pyoxigraph.Store()
    store.extend(pyoxigraph.Quad(*map(_ox_term, terms_)) for terms_ in _all_texts(oracle.graph))
    ask = rdflib.plugins.sparql.prepareQuery("ASK { ?s ?p ?o }")

    def rdflib_in() -> None:
        for claim in few:
            tuple(map(rdflib_term, claim)) in theirs  # noqa: B015

    nodes = [tuple(map(rdflib_term, claim)) for claim in few]

    def rdflib_in_prebuilt() -> None:
        for node in nodes:
            node in theirs  # noqa: B015

    def rdflib_ask() -> None:
        for s, p, o in nodes[:2_000]:
            bool(theirs.query(ask, initBindings={"s": s, "p": p, "o": o}))

    def oxigraph_in() -> None:
        for claim in few:
            pyoxigraph.Quad(*map(_ox_term, claim)) in store  # noqa: B015

    def oxigraph_ask() -> None:
        for claim in fewer:
            store.query("ASK {" + " ".join(str(_ox_term(term)) for term in claim) + "}")

    return {
        "oracle": len(texts) / best(lambda: oracle.judge_text(lines)),
        "rdflib `in graph`, terms built beforehand": len(few) / best(rdflib_in_prebuilt),
        "rdflib `in graph`, from texts": len(few) / best(rdflib_in),
        "rdflib ASK, prepared": 2_000 / best(rdflib_ask, 1),
        "pyoxigraph `in store`, from texts": len(few) / best(oxigraph_in),
        "pyoxigraph ASK, from texts": len(fewer) / best(oxigraph_ask, 1),
    }


def _all_texts(graph: Graph) -> list[tuple[str, ...]]:
    return [tuple(graph.terms[term] for term in triple) for triple in graph.triples.tolist()]


def _ox_term(term: str) -> Any:
    parts = split_literal(term)
    if parts is None:
        return pyoxigraph.NamedNode(term)
    return pyoxigraph.Literal(parts[0], datatype=pyoxigraph.NamedNode(parts[2] or ""))


def card_rates(triples: int, per_type: int) -> dict[str, Any]:
    """Cards a second on one size of graph: drawn, proved both ways and worded; and written too.

    Processor seconds stand beside, since a busy machine slows a clock on the wall.
    """
    domain = synthetic_domain(triples)
    settings = CardSettings(per_type=per_type)
    cards = 3 * per_type
    make = lambda: make_cards(domain, settings).cards  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cards.jsonl"
        drawn = best(make)
        both = best(lambda: write_cards(file, make()))
        start = time.process_time()
        write_cards(file, make())
        worked = time.process_time() - start
    return {
        "triples": len(domain.graph),
        "cards": cards,
        "kinds": make_cards(domain, settings).counts["kind"],
        "cards_per_second": cards / both,
        "cards_per_second_unwritten": cards / drawn,
        "cards_per_processor_second": cards / worked,
    }


def main(largest: int = SIZES[-1]) -> None:
    """Measure, writing what there is after each part."""
    made = make_synthetic(SIZE)
    oracle = Oracle(made.graph, made.constraints)
    settings = {"triples": SIZE, "claims": CLAIMS, "batch": LARGEST_BATCH}
    result: dict[str, Any] = {}
    parts: dict[str, Callable[[], Any]] = {
        "integers": lambda: integer_rates(SIZE, CLAIMS, repeats=5),
        "texts_claims_per_second": lambda: text_rates(oracle, mixed_claims(oracle.graph, 200_000)),
        "cards": lambda: card_rates(SIZE, 10_000),
        "growth": lambda: [integer_rates(n, 1 << 18, repeats=3) for n in SIZES if n <= largest],
    }
    for name, part in parts.items():
        result[name] = part()
        made_by = {
            "command": "python -m benchmarks oracle",
            "manifest": Manifest.now(settings, [0]),
        }
        write_json(RESULTS, {**result, **made_by})
        print(f"{name}: done", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="largest graph, in triples")
    main(parser.parse_args().largest)
