"""WordNet read, compiled and drawn from: `python -m benchmarks wordnet [FOLDER]`.

Each step in processor seconds and on the clock, JAX's compilation among them, in a process of its
own, without compiled programs on disk. FOLDER holds data.noun; without it the usual places do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from benchmarks.timing import isolated, save
from epistemic.decks.deck import CardSettings, make_cards
from epistemic.domain import built_in, load_domain
from epistemic.logic.graph import LABEL, TYPE

CARDS = 10_000
Made = TypeVar("Made")


def steps(folder: str | None) -> dict[str, Any]:
    """Seconds of each step and what it makes."""
    seconds: dict[str, dict[str, float]] = {}

    def timed(name: str, make: Callable[[], Made]) -> Made:
        cpu, wall = time.process_time(), time.perf_counter()
        made = make()
        seconds[name] = {"cpu_s": time.process_time() - cpu, "s": time.perf_counter() - wall}
        return made

    settings = built_in("wordnet").model_copy(update={"path": folder})
    domain = timed("read", lambda: load_domain(settings))
    oracle = timed("compiled", lambda: domain.oracle)
    per_type = -(-CARDS // 3)
    deck = timed("drawn", lambda: make_cards(domain, CardSettings(per_type=per_type)))
    said = oracle.compiled.by_predicate
    described = [domain.graph.ids[iri] for iri in (TYPE, LABEL)]
    stated = domain.graph.triples[:, 1]
    return {
        "relations": int(((stated != described[0]) & (stated != described[1])).sum()),
        "triples": len(domain.graph),
        "said": sum(map(len, said.values())),
        "terms": len(domain.graph.terms),
        "broken": len(oracle.violations),
        "cards": len(deck.cards),
        "kinds": deck.counts["kind"],
        "seconds": seconds,
        "total_cpu_s": sum(step["cpu_s"] for step in seconds.values()),
        "total_s": sum(step["s"] for step in seconds.values()),
    }


def main(folder: str | None = None) -> None:
    """Measure once, in a process of its own."""
    found = isolated("benchmarks.wordnet:steps", folder=folder)
    del found["folder"]
    save("wordnet", found, "WordNet's files to cards, from a cold start")


if __name__ == "__main__":
    main()
