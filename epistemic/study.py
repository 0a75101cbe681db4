"""One study over an output folder, stage by stage; every stage reads the files of those before.

cards.jsonl, near_miss.jsonl     the decks; beside each a .json: hash, counts, leakage audit
*_whole_graph.json               each card's label by the whole graph
answers/NAME.jsonl               every answer of a system (near_miss/answers/ likewise)
quality.json, skipped.json       the sweep over graph quality; systems left out, and why
results.json, metrics.json       scores; metrics.json holds the plain values alone
figures/, report.html            what people look at
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError
from rich.console import Console

from epistemic import report
from epistemic.cards import GOLDS, Card, deck_hash, read_cards
from epistemic.decks.deck import CardSettings, deck_graph, make_cards
from epistemic.decks.near_miss import make_near_misses
from epistemic.decks.saving import given_deck, refuse_other_golds, save_deck
from epistemic.domain import Domain, find, load_domain
from epistemic.evaluate import Row, evaluate, read_answers, run_digest
from epistemic.export import export
from epistemic.logic.graph import Graph
from epistemic.logic.oracle import Oracle
from epistemic.look import look
from epistemic.results import Deck, NearMiss, QualityPoint, Results, Scored, WholeGraph
from epistemic.scoring import assessment
from epistemic.scoring.thesis import load_thesis
from epistemic.settings import StudySettings
from epistemic.systems import (
    BLIND,
    CONTROLS,
    NEED_A_MODEL,
    Setting,
    System,
    build_system,
    file_behind,
)
from epistemic.systems.licence import Licence, Licensed
from epistemic.systems.replay import Replay
from epistemic.worse import degrade
from evidence.results import Manifest
from evidence.runtime.files import file_digest, read_jsonl, write_json, write_text
from evidence.runtime.language_models import (
    Model,
    ModelSettings,
    decisive,
    open_model,
)
from evidence.runtime.progress import clock

_Part = TypeVar("_Part")
Label = Literal["E", "C", "U"]


def run(settings: StudySettings, folder: Path, console: Console) -> Results:
    """Every stage; of the stage `metrics` the scores alone, from answers that are there.

    Args:
      settings: what is done; its stage is "all" or "metrics".
      folder: where the study's files are.
      console: what is said to people goes there.

    Raises:
      ValueError: a setting or a file is wrong; names it.
    """
    everything = settings.stage == "all"
    if everything:
        domain = load_domain(settings.domain)
        _draw(settings, domain, folder, console)
        _draw_near_misses(settings, domain, folder)
        _evaluate(settings, domain, folder)
    results = _score(settings, folder)
    results.save(folder)
    write_json(folder / "metrics.json", assessment.plain_metrics(results.systems))
    if everything:
        with clock("drawing the page", console):
            report.write(folder)
    return results


def run_stage(settings: StudySettings, folder: Path, console: Console) -> Sequence[Path]:
    """A stage that writes no results, from the files that the stages before it left.

    Args:
      settings: what is done; its stage is any but "all" and "metrics".
      folder: where the study's files are.
      console: what is said to people goes there.

    Returns:
      What was written.

    Raises:
      ValueError: a setting or a file is wrong, or a stage before is missing; names it.
    """
    if settings.stage == "report":
        _needed(folder / "results.json", "metrics")
        return [report.write(folder)]
    if settings.stage == "export":
        return _export(folder, console)
    domain = load_domain(settings.domain)
    if settings.stage == "look":
        look(domain, settings, console)
        return []
    if settings.stage == "cards":
        return _draw(settings, domain, folder, console)
    if settings.stage == "near_miss":
        return _draw_near_misses(settings, domain, folder)
    return _evaluate(settings, domain, folder)


def _export(folder: Path, console: Console) -> Sequence[Path]:
    """The stage `export`."""
    names = [name for name in ("cards", "near_miss") if (folder / f"{name}.jsonl").exists()]
    decks = {
        name: (_cards(folder, name), _part(folder / f"{name}.json", Deck, name))
        for name in names or ["cards"]
    }
    return export(decks, folder, f"epistemic_{decks['cards'][1].domain}", console)


# ---- decks ----


def _draw(
    settings: StudySettings, domain: Domain, folder: Path, console: Console
) -> Sequence[Path]:
    """The stage `cards`."""
    if unread := domain.constraints.unread:
        kinds = ", ".join(f"{number} {kind}" for kind, number in unread.items())
        console.print(f"[yellow]Axioms not read[/], which leave claims unknown: {kinds}")
    if settings.shacl:
        _validate(domain, folder, console)
    if settings.deck is None:
        return save_deck(make_cards(domain, settings.cards), domain, folder, "cards")
    cards = read_cards(_there("deck", settings.deck))
    known = deck_graph(domain, settings.cards)
    refuse_other_golds(settings.deck, cards, domain, known)
    return save_deck(given_deck(cards, known), domain, folder, "cards")


def _draw_near_misses(settings: StudySettings, domain: Domain, folder: Path) -> Sequence[Path]:
    """The stage `near_miss`."""
    if settings.near_miss.num == 0:
        return []
    return save_deck(make_near_misses(domain, settings.near_miss), domain, folder, "near_miss")


def _validate(domain: Domain, folder: Path, console: Console) -> None:
    conforms, text = domain.validate()
    path = write_text(folder / "validation.txt", text)
    said = "conforms to" if conforms else "[yellow]violates[/]"
    console.print(f"The graph {said} its shapes; pySHACL's report: {path}")


# ---- answers ----


@dataclass(frozen=True)
class _Asked:
    """A deck that systems answer.

    Attributes:
      cards: all of them.
      known: the domain's graph less what the deck withholds.
      folder: holds the folder `answers`.
    """

    cards: list[Card]
    known: Graph
    folder: Path


def _evaluate(settings: StudySettings, domain: Domain, folder: Path) -> Sequence[Path]:
    """The stage `eval`."""
    asked = _Asked(_cards(folder, "cards"), _known(folder, "cards", domain, settings.cards), folder)
    decks = [asked]
    if (folder / "near_miss.jsonl").exists():
        near = settings.near_miss
        drawn = CardSettings(seed=near.seed, withhold=near.withhold)
        known = _known(folder, "near_miss", domain, drawn)
        decks.append(_Asked(_cards(folder, "near_miss"), known, folder / "near_miss"))
    skipped: dict[str, str] = {}
    written: list[Path] = []
    with open_model(_replies_found(settings.llm, folder)) as model:
        for deck in decks:
            written += _answer(settings, domain, deck, model, skipped)
    points = _sweep(settings, domain, asked)
    write_json(folder / "skipped.json", skipped)
    write_json(folder / "quality.json", points)
    return written


def _replies_found(asked: ModelSettings, folder: Path) -> ModelSettings:
    """The model's settings; recorded replies are found where they lie, and fit this deck."""
    if asked.source != "recorded" or asked.replies is None:
        return asked
    path = _there("llm.replies", asked.replies)
    recorded = {row.get("deck") for row in read_jsonl(path)} - {None}
    here = _part(folder / "cards.json", Deck, "cards").hash
    if recorded - {here}:
        raise ValueError(
            f"llm.replies: {path.name} answers the deck {min(map(str, recorded))}, this one is "
            f"{here}"
        )
    return asked.model_copy(update={"replies": str(path)})


def _answer(
    settings: StudySettings,
    domain: Domain,
    deck: _Asked,
    model: Model | None,
    skipped: dict[str, str],
) -> list[Path]:
    """Every system's answers to a deck; adds to `skipped` those that can't answer."""
    names = settings.system.names
    graph = _degraded(settings, domain, deck.known, settings.kg.keep, settings.kg.wrong)
    setting = Setting(deck.cards, domain, graph, settings.system, model, settings.seed)
    written = []
    for name in names:
        if model is None and name in NEED_A_MODEL and len(names) > 1:
            skipped[name] = "no language model was chosen; llm=local is the smallest"
            continue
        path = deck.folder / "answers" / f"{name}.jsonl"
        _rows(settings, build_system(name, setting), name, deck.cards, path, graph)
        written.append(path)
    return written


def _rows(
    settings: StudySettings, system: System, name: str, cards: list[Card], path: Path, graph: Graph
) -> dict[str, Row]:
    """Answers of a system, under a digest of everything that they depend on."""
    asked = settings.llm
    if asked.source == "recorded" and asked.replies is not None:
        replies = str(_there("llm.replies", asked.replies))
        asked = asked.model_copy(update={"replies": replies})
    of_answers = {
        "system": name,
        "settings": settings.system.model_dump(exclude={"names"}),
        "file": file_behind(name, settings.system),
        "graph": graph.digest,
        "constraints": [file_digest(find(name)) for name in settings.domain.constraints],
        "domain": settings.domain.model_dump(exclude={"slow_minutes"}),
        "model": decisive(asked) if name in NEED_A_MODEL else None,
        "seed": settings.seed,
    }
    return evaluate(system, name, cards, path, run_digest(deck_hash(cards), of_answers))


def _known(folder: Path, name: str, domain: Domain, drawn: CardSettings) -> Graph:
    """What systems may know: the domain's graph, less what a deck withholds to make unknowns.

    Args:
      folder: of the study.
      name: of the deck's files.
      domain: whose graph it is.
      drawn: which values are withheld.

    Raises:
      ValueError: the deck was drawn from another graph.
    """
    known = deck_graph(domain, drawn)
    if _part(folder / f"{name}.json", Deck, name).graph.known != known.digest:
        raise ValueError(
            f"{folder / name}.jsonl was drawn from another graph: give the domain, and the "
            f"settings {name}.seed and {name}.withhold, that it was made with"
        )
    return known


def _degraded(
    settings: StudySettings, domain: Domain, known: Graph, keep: float, wrong: float
) -> Graph:
    """What is left of a graph; see `KnowledgeSettings`."""
    if keep == 1 and wrong == 0:
        return known
    iris = [predicate.iri for predicate in domain.predicates.values()]
    return degrade(known, domain.constraints, iris, keep, wrong, settings.seed)


def _sweep(settings: StudySettings, domain: Domain, deck: _Asked) -> list[QualityPoint]:
    """How the licence fares as the graph gets worse, alone and over the model's replies.

    The replies stay those to the facts of the graph as systems know it.
    """
    thesis = load_thesis()
    cards = [card for card in deck.cards if card.requires != "graph"]
    replies = deck.folder / "answers" / f"{thesis.unlicensed}.jsonl"
    points = []
    for wrong in settings.quality.wrong:
        for keep in settings.quality.keep:
            graph = _degraded(settings, domain, deck.known, keep, wrong)
            oracle = Oracle(graph, domain.constraints)
            systems: dict[str, System] = {"graph_rag_licence": Licence(oracle)}
            if replies.exists():
                systems[thesis.licensed] = Licensed(Replay(replies), oracle)
            scores = {}
            for name, system in systems.items():
                path = deck.folder / "quality" / f"{name}_{keep:g}_{wrong:g}.jsonl"
                rows = _rows(settings, system, name, cards, path, graph)
                scores[name] = assessment.scores(cards, rows, settings.seed)
            points.append(QualityPoint(keep=keep, wrong=wrong, triples=len(graph), systems=scores))
    return points


# ---- scores ----


def _score(settings: StudySettings, folder: Path) -> Results:
    """The stage `metrics`."""
    cards = _cards(folder, "cards")
    deck = _part(folder / "cards.json", Deck, "cards")
    settled = [card for card in cards if card.requires != "graph"]
    apart = [card for card in cards if card.requires == "graph"]
    scored = _scored(settings, settled, folder, deck)
    near = None
    if (folder / "near_miss.jsonl").exists():
        about = _part(folder / "near_miss.json", Deck, "near_miss")
        found = _scored(settings, _cards(folder, "near_miss"), folder / "near_miss", about)
        near = NearMiss(deck=about, systems=found.systems)
    whole = _part(folder / "cards_whole_graph.json", dict[str, Label], "cards")
    return Results(
        manifest=Manifest.now(settings.model_dump(by_alias=True), [settings.seed]),
        thesis=scored.thesis,
        deck=deck,
        systems=scored.systems,
        comparisons=scored.comparisons,
        needs_graph=_scored(settings, apart, folder, deck) if apart else None,
        whole_graph=_blind(settings, cards, whole, folder, deck),
        near_miss=near,
        quality=_part(folder / "quality.json", tuple[QualityPoint, ...], "eval"),
        skipped=_part(folder / "skipped.json", dict[str, str], "eval"),
    )


def _scored(settings: StudySettings, cards: list[Card], folder: Path, deck: Deck) -> Scored:
    """The systems by the cards' own golds; those shown no facts only where there are no others."""
    names = [name for name in settings.system.names if name not in BLIND]
    answers = read_answers(folder, names or settings.system.names, deck.hash, cards)
    return assessment.assess(cards, answers, load_thesis(), settings.seed)


def _blind(
    settings: StudySettings, cards: list[Card], whole: dict[str, Label], folder: Path, deck: Deck
) -> WholeGraph | None:
    """The systems shown no facts, and the controls, by each card's label by the whole graph."""
    answered = [n for n in settings.system.names if (folder / "answers" / f"{n}.jsonl").exists()]
    if not set(answered) & set(BLIND):
        return None
    asked = [replace(card, label=whole[card.id], gold=GOLDS[whole[card.id]]) for card in cards]
    names = [name for name in answered if name in BLIND or name in CONTROLS]
    answers = read_answers(folder, names, deck.hash, cards)
    return WholeGraph(
        labels=Counter(whole.values()),
        changed=sum(card.label != whole[card.id] for card in cards),
        systems=assessment.assess(asked, answers, load_thesis(), settings.seed).systems,
    )


# ---- files ----


def _there(setting: str, name: str) -> Path:
    """A file by its path, or by its name among those that ship."""
    try:
        return find(name)
    except ValueError:
        raise ValueError(f"{setting}: {name} does not exist") from None


def _needed(path: Path, stage: str) -> Path:
    if not path.exists():
        raise ValueError(f"{path} does not exist: run the stage {stage} into that folder first")
    return path


def _cards(folder: Path, name: str) -> list[Card]:
    return read_cards(_needed(folder / f"{name}.jsonl", name))


def _part(path: Path, kind: type[_Part], stage: str) -> _Part:
    """What a stage left in a file."""
    try:
        return TypeAdapter(kind).validate_json(_needed(path, stage).read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path}: {error.errors()[0]['msg']}") from None
