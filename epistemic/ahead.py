"""What a study will take, said before it begins."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from epistemic.domain import find
from epistemic.settings import StudySettings
from epistemic.systems import NEED_A_MODEL
from evidence.pages import counted
from evidence.runtime.files import read_jsonl
from evidence.runtime.progress import expected

_BEGUN, _A_CARD = 8.0, 0.025
"""Seconds of one core: before and after the cards, and for each, all systems together that ask no
model; measured on 250 cards about rivers."""
_A_GRAPH, _A_TRIPLE = 0.1, 5e-6
"""Likewise for each worse graph: from `benchmarks completeness`, and `completeness_installed`, most
of which is WordNet."""
_COMPILED = 3.0


def of_systems(settings: StudySettings, console: Console) -> None:
    """Cards, systems and prompts of a study of systems, and how long all but a model takes."""
    names, near = settings.system.names, settings.near_miss.cards
    if settings.deck is None:
        cards = 3 * (settings.cards.per_type + settings.cards.needs_graph)
    else:
        cards = sum(1 for _ in read_jsonl(find(settings.deck)))
    said = f"{counted(cards, 'card')} and {near:,} of near misses, {counted(len(names), 'system')}"
    asking = [name for name in names if name in NEED_A_MODEL]
    if settings.llm.source in ("endpoint", "local") and asking:
        prompts = (cards + near) * len(asking)
        said += f"; up to {prompts:,} prompts for {settings.llm.model}, whose time comes on top"
    console.print(said, style="dim", markup=False, highlight=False)
    expected(_BEGUN + _A_CARD * (cards + near), _COMPILED, console)


def of_sweep(settings: StudySettings, triples: Iterable[int], console: Console) -> None:
    """Worse graphs and claims of a study of completeness, and how long they take.

    Args:
      settings: of the study.
      triples: of each domain's graph.
      console: where to.
    """
    study, budget = settings.study, settings.budget
    graphs = len(study.keep) * len(study.wrong) * budget.draws
    sizes = list(triples)
    console.print(
        f"{counted(len(sizes), 'domain')}, {graphs:,} worse graphs each, "
        f"{budget.claims:,} claims a graph",
        style="dim",
        highlight=False,
    )
    seconds = sum(graphs * (_A_GRAPH + _A_TRIPLE * size) for size in sizes)
    expected(_BEGUN + seconds, _COMPILED, console)
