"""The study of completeness: worse graphs, claims and models, every point of the sweep measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from rich.console import Console
from rich.progress import Progress

from epistemic import ahead
from epistemic.cards import Card, read_cards
from epistemic.completeness import linked, linking, report, scoring
from epistemic.completeness.claims import Sample, answer_draws, sample
from epistemic.completeness.models import CONTROLS, GRAPH, Judged, answers, role_of
from epistemic.completeness.results import (
    Alone,
    BreakEven,
    Completeness,
    Point,
    Results,
    Size,
)
from epistemic.completeness.scoring import Worth
from epistemic.completeness.thesis import judge, load_thesis
from epistemic.decks.deck import deck_graph, make_cards
from epistemic.domain import Domain, built_in, find, load_domain
from epistemic.logic.graph import Graph
from epistemic.logic.oracle import Oracle
from epistemic.logic.slow import SlowShapes
from epistemic.settings import StudySettings
from epistemic.systems import Response, Setting, build_system, query_of
from epistemic.worse import degrade
from evidence.answers import Answer
from evidence.results import Manifest
from evidence.runtime.devices import spread
from evidence.runtime.files import is_first_process
from evidence.runtime.language_models import Model, ModelSettings, open_model


class _Group(NamedTuple):
    """Models that answer the same claims.

    Attributes:
      names: of them.
      samples: one a draw.
      measures_graph: whether the graph itself is measured on these claims.
    """

    names: tuple[str, ...]
    samples: list[Sample]
    measures_graph: bool


class _Cell(NamedTuple):
    """One model of one domain at one share kept and wrong.

    Attributes:
      model: its name.
      keep, wrong: shares of the graph.
      worth: one a price.
    """

    model: str
    keep: float
    wrong: float
    worth: list[Worth]


class _Step(NamedTuple):
    """What was found at one share kept and wrong."""

    cells: list[_Cell]
    linked: list[linked.Cell]


class _Aloud(NamedTuple):
    """The models' answers in words, as linkers understand them.

    Attributes:
      at: where the licence is tried.
      samples: one a draw.
      models: name -> its place in the samples.
      heard: what is found in the answers.
    """

    at: linked.At
    samples: list[Sample]
    models: dict[str, int]
    heard: linking.Ways


def run(settings: StudySettings, folder: Path, console: Console) -> Results:
    """The whole study; writes results.json and the page.

    Args:
      settings: what is done.
      folder: where the files go.
      console: progress goes there, where it is a terminal.

    Raises:
      ValueError: a setting or a file is wrong; names it.
    """
    domains = settings.study.domains
    meant = [settings.domain] if domains is None else [built_in(name) for name in domains]
    loaded = [load_domain(each) for each in meant]
    ahead.of_sweep(settings, (len(domain.graph) for domain in loaded), console)
    found = study(settings, list(map(compiled_alone, loaded)), console)
    results = Results(
        manifest=Manifest.now(settings.model_dump(by_alias=True), [settings.seed]),
        thesis=judge(load_thesis(), found),
        warnings=tuple(line for domain in loaded for line in _warnings(settings, domain)),
        completeness=found,
    )
    results.save(folder)
    if is_first_process():
        report.write(folder)
    return results


def _warnings(settings: StudySettings, domain: Domain) -> Iterator[str]:
    """What of a domain's part was left out."""
    if len(domain.constraints.slow):
        yield (
            f"{domain.name}: shapes that only pySHACL can judge are left out of world and licence: "
            f"{domain.constraints.slow.names}"
        )
    means = settings.study.linking
    if means is not None and (styles := linking.without_wordings(means, domain.name)):
        yield f"{domain.name}: study.linking.wordings has no file; left out: {', '.join(styles)}"


def compiled_alone(domain: Domain) -> Domain:
    """A domain without the shapes that pySHACL judges: worse graphs by the hundred take hours."""
    return replace(domain, constraints=replace(domain.constraints, slow=SlowShapes()))


def study(settings: StudySettings, domains: Sequence[Domain], console: Console) -> Completeness:
    """Every domain's sweep.

    Args:
      settings: what is drawn and varied.
      domains: the worlds.
      console: progress goes there, where it is a terminal.
    """
    parts, ways = [], []
    quiet = console.quiet or not console.is_terminal
    at = list(product(settings.study.wrong, settings.study.keep))
    with Progress(console=console, transient=True, disable=quiet) as progress:
        for domain in domains:
            task = progress.add_task(domain.name, total=-(-len(at) // jax.process_count()))
            asked = _asked(settings, domain)
            aloud = _aloud(settings, domain)
            step = _Stepping(settings, domain, asked, aloud, partial(progress.advance, task))
            found = spread(at, step)
            cards = 0 if asked is None else len(asked.samples[0].gold)
            part = _part(settings, domain, [cell for step in found for cell in step.cells], cards)
            parts.append(part)
            if aloud is not None:
                spoken = [cell for step in found for cell in step.linked]
                said = (aloud.at, aloud.heard, aloud.samples)
                ways.append(linked.part(domain.name, *said, spoken, settings.seed))
    return Completeness(
        sizes=tuple(size for part in parts for size in part.sizes),
        alone=tuple(alone for part in parts for alone in part.alone),
        points=tuple(point for part in parts for point in part.points),
        break_even=tuple(end for part in parts for end in part.break_even),
        linking=linked.joined(ways),
    )


# ---- who answers what ----


def _drawn(settings: StudySettings, domain: Domain, wrong: float) -> _Group:
    """The simulated models and the controls, on fresh claims in every draw."""
    study = settings.study

    def answering(claims: Judged, seed: int) -> np.ndarray:
        known = [
            answers(model, claims, study.price, answer_draws(seed, 0))
            for model in study.models.values()
        ]
        blind = [
            np.tile(control(len(claims.gold), answer_draws(seed, stream)), (len(study.price), 1))
            for stream, control in enumerate(CONTROLS.values(), start=1)
        ]
        return np.stack([*known, *blind]).astype(np.int8)

    samples = []
    for seed in _seeds(settings):
        heard_from = _worse(settings, domain, 1.0, wrong, seed)
        number, heard = settings.budget.claims, study.heard
        samples.append(sample(domain, heard_from, number, heard, answering, seed))
    return _Group((*study.models, *CONTROLS), samples, measures_graph=True)


def _asked(settings: StudySettings, domain: Domain) -> _Group | None:
    """The language models, each asked once about a deck of cards; None where there is none."""
    study = settings.study
    if settings.llm.source == "none":
        return None
    if study.deck is None:
        cards = make_cards(domain, settings.cards).cards
    else:
        cards = read_cards(find(study.deck.format(domain=domain.name)))

    def ask(source: ModelSettings) -> list[np.ndarray]:
        with open_model(source) as model:
            assert model is not None
            return [_said(settings, domain, cards, model, name) for name in study.asked]

    sources = list(_sources(settings, domain))
    said = [answers for of_model in spread(sources, ask) for answers in of_model]
    names = [f"{name} ({source.model})" for source in sources for name in study.asked]
    claims = domain.oracle.encode([card.claim for card in cards])
    gold = domain.oracle.judge_ids(claims).verdict
    priced = np.repeat(np.stack(said)[:, None], len(study.price), axis=1)
    alike = Sample(claims, gold, claims[:, 0].astype(np.int64), priced)
    return _Group(tuple(names), [alike] * settings.budget.draws, measures_graph=False)


def _sources(settings: StudySettings, domain: Domain) -> Iterator[ModelSettings]:
    """The model that is asked, or every one whose replies are recorded."""
    recorded = settings.study.recorded if settings.llm.source == "recorded" else ()
    for one in recorded:
        path = find(one.replies.format(domain=domain.name))
        yield settings.llm.model_copy(update={"model": one.model, "replies": str(path)})
    if not recorded:
        yield settings.llm


def _said(
    settings: StudySettings, domain: Domain, cards: Sequence[Card], model: Model, name: str
) -> np.ndarray:
    """i8[N] of `Answer`: a system's answers to cards."""
    known = deck_graph(domain, settings.cards)
    system = build_system(
        name, Setting(cards, domain, known, settings.system, model, settings.seed)
    )
    replies = list(system.answer([query_of(card) for card in cards]))
    said = [reply.answer if isinstance(reply, Response) else reply for reply in replies]
    if all(answer == Answer.ERROR for answer in said):
        raise ValueError(f"study.asked: {model.name} answered no card about {domain.name}")
    return np.array(said, np.int8)


# ---- the sweep ----


@dataclass(frozen=True)
class _Stepping:
    """Measures every model of a domain at one share wrong and kept."""

    settings: StudySettings
    domain: Domain
    asked: _Group | None
    aloud: _Aloud | None
    done: Callable[[], None]

    def __call__(self, at: tuple[float, float]) -> _Step:
        (wrong, keep), settings, found = at, self.settings, list[_Cell]()
        oracles = [
            Oracle(_worse(settings, self.domain, keep, wrong, seed), self.domain.constraints)
            for seed in _seeds(settings)
        ]
        for group in self._groups(wrong):
            licences = [
                oracle.judge_ids(one.claims).verdict
                for oracle, one in zip(oracles, group.samples, strict=True)
            ]
            counts = scoring.ledger(group.samples, licences, settings.study.price)
            names = [*group.names, GRAPH] if group.measures_graph else group.names
            rows = zip(names, scoring.worth(counts, settings.seed), strict=False)
            found += [_Cell(name, keep, wrong, row) for name, row in rows]
        spoken: list[linked.Cell] = []
        if self.aloud is not None and wrong == self.aloud.at.wrong:
            said = (self.aloud.heard, self.aloud.models, self.aloud.at, self.aloud.samples)
            spoken += linked.cells(*said, oracles, keep, settings.seed)
        self.done()
        return _Step(found, spoken)

    def _groups(self, wrong: float) -> list[_Group]:
        return [self._simulated[wrong], *([self.asked] if self.asked is not None else [])]

    @cached_property
    def _simulated(self) -> dict[float, _Group]:
        every = self.settings.study.wrong
        return {wrong: _drawn(self.settings, self.domain, wrong) for wrong in every}


def _seeds(settings: StudySettings) -> range:
    """One a draw; studies of other seeds share none."""
    first = settings.seed * 100_000
    return range(first, first + settings.budget.draws)


def _worse(settings: StudySettings, domain: Domain, keep: float, wrong: float, seed: int) -> Graph:
    """The world's graph, less what a draw loses, with what it gets wrong."""
    iris = [predicate.iri for predicate in domain.predicates.values()]
    return degrade(domain.graph, domain.constraints, iris, keep, wrong, seed, settings.study.loss)


# ---- the licence that must find its claims ----


def _aloud(settings: StudySettings, domain: Domain) -> _Aloud | None:
    """The simulated models' answers in words, at the thesis' price and share wrong where they are
    tried, else at the first.
    """
    study, thesis = settings.study, load_thesis()
    if study.linking is None:
        return None
    wrong = thesis.wrong if thesis.wrong in study.wrong else study.wrong[0]
    price = thesis.price if thesis.price in study.price else study.price[0]
    group = _drawn(settings, domain, wrong)
    heard = linking.hear(domain, study.linking, group.samples, _seeds(settings))
    models = {name: group.names.index(name) for name in study.linking.models}
    at = linked.At(price, study.price.index(price), wrong)
    return _Aloud(at, group.samples, models, heard)


# ---- what is written ----


def _part(
    settings: StudySettings, domain: Domain, cells: Sequence[_Cell], cards: int
) -> Completeness:
    """What was found on one domain."""
    iris = [predicate.iri for predicate in domain.predicates.values()]
    ids = [domain.graph.ids[iri] for iri in iris if iri in domain.graph.ids]
    size = Size(
        domain=domain.name,
        triples=len(domain.graph),
        losable=int(np.isin(domain.graph.triples[:, 1], ids).sum()),
        claims=settings.budget.claims,
        cards=cards,
        draws=settings.budget.draws,
    )
    prices = settings.study.price
    priced = [(cell, *pair) for cell in cells for pair in zip(prices, cell.worth, strict=True)]
    most = max(settings.study.keep)
    return Completeness(
        sizes=(size,),
        alone=tuple(
            _alone(domain.name, cell, price, worth)
            for cell, price, worth in priced
            if cell.keep == most
        ),
        points=tuple(_point(domain.name, cell, price, worth) for cell, price, worth in priced),
        break_even=tuple(_ends(settings, domain.name, cells)),
    )


def _alone(domain: str, cell: _Cell, price: float, worth: Worth) -> Alone:
    return Alone(
        domain=domain,
        model=cell.model,
        role=role_of(cell.model),
        wrong=cell.wrong,
        price=price,
        score=worth.alone,
        LA=worth.LA_alone,
        FAR_NE=worth.FAR_NE_alone,
    )


def _point(domain: str, cell: _Cell, price: float, worth: Worth) -> Point:
    return Point(
        domain=domain,
        model=cell.model,
        keep=cell.keep,
        wrong=cell.wrong,
        price=price,
        ruling=scoring.ruling(worth.gain),
        gain=worth.gain,
        over_graph=worth.over_graph,
        LA=worth.LA,
        FAR_NE=worth.FAR_NE,
    )


def _ends(settings: StudySettings, domain: str, cells: Sequence[_Cell]) -> Iterator[BreakEven]:
    """The break-even of every model at every share wrong and price, the graph itself left out."""
    lines: dict[tuple[str, float], list[_Cell]] = {}
    for cell in cells:
        if role_of(cell.model) != "reference":
            lines.setdefault((cell.model, cell.wrong), []).append(cell)
    for ((model, wrong), line), (p, price) in product(
        lines.items(), enumerate(settings.study.price)
    ):
        gains = [cell.worth[p].gain for cell in line]
        pays, keep = scoring.break_even([cell.keep for cell in line], gains)
        yield BreakEven(domain=domain, model=model, wrong=wrong, price=price, pays=pays, keep=keep)
