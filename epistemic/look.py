"""What was understood of a domain, in a terminal, before anything is asked of anybody.

The stage `look`: classes, properties in sentences, what may not be said, which axioms nothing
reads, how many cards there are of each label, and ten of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from rdflib.namespace import OWL, SH
from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epistemic.cards import Card
from epistemic.decks.deck import CardSettings, Deck, make_cards
from epistemic.decks.drawing import TooFew
from epistemic.decks.near_miss import make_near_misses
from epistemic.domain import Domain
from epistemic.logic.english import split_words
from epistemic.logic.graph import TYPE
from epistemic.logic.phrasing import FORMS, phrasing
from epistemic.predicates import Predicate
from epistemic.settings import StudySettings
from epistemic.systems import NEED_A_MODEL
from evidence.pages import counted

_ROWS, _CARDS = 30, 10
"""Rows of a table, and cards."""


def look(domain: Domain, settings: StudySettings, console: Console) -> None:
    """Say what was understood.

    Args:
      domain: as it was read.
      settings: the deck that would be drawn, and who would answer it.
      console: where to.
    """
    for line in _about_graph(domain):
        _say(console, line)
    for title, table in (("Classes", _classes(domain)), ("Properties", _properties(domain))):
        _say(console, f"\n{title}")
        console.print(table)
    for line in _about_constraints(domain):
        _say(console, line)
    deck, near = _drawn(domain, settings.cards, console), _near_misses(domain, settings, console)
    if deck is not None:
        title = f"{len(deck.cards):,} cards: entailed (E), contradicted (C), unknown (U)"
        _say(console, f"\n{title}")
        console.print(_labels(deck, domain))
        for card in deck.cards[:_CARDS]:
            _show(card, console)
    for line in _next(domain, settings, deck, near):
        _say(console, line)


def _say(console: Console, line: str) -> None:
    console.print(Text(line))


# ---- the graph ----


def _about_graph(domain: Domain) -> Iterator[str]:
    graph = domain.graph
    s, p, o = graph.triples.T
    things = np.unique(np.concatenate([s, o[graph.is_name[o] & (p != graph.ids[TYPE])]]))
    blank = sum(graph.terms[thing].startswith("_:") for thing in things.tolist())
    labelled = np.unique(s[np.isin(p, graph.naming)])
    without = len(np.setdiff1d(things, labelled)) - blank
    yield f"{domain.name}: {len(graph):,} triples, {len(things):,} things"
    if without:
        yield (
            f"{counted(without, 'thing')} without a label: called by the end of the IRI, "
            f"such as {_example(domain, np.setdiff1d(things, labelled))}"
        )
    if blank:
        yield f"{counted(blank, 'blank node')}, which no sentence can name: in no card"
    if domain.graph.shared_labels:
        yield (
            f"{counted(len(graph.shared_labels), 'name')} borne by several things, which never "
            "meet in a card"
        )


def _example(domain: Domain, things: np.ndarray) -> str:
    return next(
        (
            domain.graph.label(thing)
            for thing in things.tolist()
            if not domain.graph.terms[thing].startswith("_:")
        ),
        "",
    )


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(
            name, justify="right" if name in ("members", "triples", *"ECU") else "left"
        )
    return table


def _fill(table: Table, rows: Sequence[tuple[str, ...]]) -> Table:
    """The first rows, and how many more there are."""
    for row in rows[:_ROWS]:
        table.add_row(*map(Text, row))
    if len(rows) > _ROWS:
        table.add_row(f"and {len(rows) - _ROWS:,} more")
    return table


def _classes(domain: Domain) -> Table:
    types = domain.oracle.compiled.by_predicate.get(domain.graph.ids[TYPE], np.zeros((0, 3), int))
    hierarchy, terms = domain.constraints.hierarchy, domain.graph.terms
    members = Counter(terms[thing] for thing in types[:, 2].tolist())
    rows = [
        (
            domain.class_name(name),
            f"{number:,}",
            ", ".join(map(domain.class_name, hierarchy.apart_from(name))) or "nothing",
        )
        for name, number in members.most_common()
    ]
    return _fill(_table("class", "members", "has no member in common with"), rows)


def _properties(domain: Domain) -> Table:
    by_predicate, ids = domain.oracle.compiled.by_predicate, domain.graph.ids
    rows = []
    for name, predicate in domain.predicates.items():
        said = by_predicate.get(ids.get(predicate.iri, -1), np.zeros((0, 3), int))
        mark = " ?" if _unsure(predicate) else ""
        called = f"{_called(name, predicate)}{mark}"
        rows.append((called, f"{len(said):,}", _sentence(domain, said)))
    return _fill(_table("property", "triples", "in a sentence"), rows)


def _called(name: str, predicate: Predicate) -> str:
    """A property's label, and its short name, by which settings know it, where that says another
    thing."""
    return (
        predicate.label if split_words(name) == predicate.label else f"{predicate.label} [{name}]"
    )


def _sentence(domain: Domain, rows: np.ndarray) -> str:
    """The first triple with names on both sides, said."""
    terms = domain.graph.terms
    for s, p, o in rows[:100].tolist():
        if not any(terms[end].startswith("_:") for end in (s, o)):
            return domain.sentence((terms[s], terms[p], terms[o]))
    return "(of blank nodes alone)" if len(rows) else ""


def _unsure(predicate: Predicate) -> bool:
    """Whether nobody said how a label is meant, and its words don't tell."""
    entry = phrasing(predicate.label, "entry", functional=False).clause
    return predicate.said.clause == entry and predicate.facts == predicate.said.facts


# ---- constraints ----


def _about_constraints(domain: Domain) -> Iterator[str]:
    constraints = domain.constraints
    kinds = Counter(rule.kind for rule in constraints.rules)
    logic = {
        "symmetric": len(constraints.symmetric),
        "inverse": len(constraints.inverse),
        "transitive": len(constraints.transitive),
        "subclass": len(constraints.subclass),
        "subproperty": len(constraints.subproperty),
        "domain": len(constraints.domain),
        "range": len(constraints.range),
    }
    yield f"Read, as what may not be said: {_counts(kinds) or 'nothing'}"
    if any(logic.values()):
        yield f"Read, as what follows: {_counts(logic)}"
    if not (constraints.rules or len(constraints.slow)) and any(
        term.startswith((str(OWL), str(SH))) for term in domain.graph.terms
    ):
        yield "The graph's files hold axioms or shapes: give them as domain.constraints, too"
    if constraints.unread:
        yield f"Not read, which leaves claims unknown: {_counts(constraints.unread)}"
    if len(constraints.slow):
        yield (
            f"Left to pySHACL, claim by claim: {counted(len(constraints.slow), 'shape')} "
            f"({constraints.slow.names}); domain.slow_minutes={constraints.slow.minutes:g} is "
            "the limit"
        )
    for broken in domain.oracle.violations[:5]:
        yield (
            f"The graph itself breaks {broken.constraint}: "
            f"{counted(len(broken.subjects), 'subject')}, such as "
            f"{domain.name_of(broken.subjects[0])}; left out of contradictory cards"
        )
    if more := len(domain.oracle.violations[5:]):
        yield f"and {counted(more, 'more constraint')} that it breaks"


def _counts(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name}" for name, number in numbers.items() if number)


# ---- cards ----


def _drawn(domain: Domain, settings: CardSettings, console: Console) -> Deck | None:
    """The deck that would be drawn, or the largest that can be; None: there is none."""
    try:
        return make_cards(domain, settings)
    except TooFew as few:
        _say(console, str(few))
        name = few.setting.removeprefix("cards.")
        if name == "per_type" and not few.most:
            return None
        return _drawn(domain, settings.model_copy(update={name: few.most}), console)
    except ValueError as error:
        _say(console, str(error))
        return None


def _near_misses(domain: Domain, settings: StudySettings, console: Console) -> int:
    """How many cards of near misses would be drawn, or can be at most."""
    near = settings.near_miss
    if near.num:
        try:
            make_near_misses(domain, near)
        except TooFew as few:
            _say(console, str(few))
            return near.model_copy(update={"num": few.most}).cards
        except ValueError as error:
            _say(console, f"{error}; or none: near_miss.num=0")
            return 0
    return near.cards


def _labels(deck: Deck, domain: Domain) -> Table:
    """How many claims each way: a property without any can't be asked about, for no constraint says
    what would contradict it, or its subjects have no second property."""
    counts = Counter((c.claim.pred, c.label) for c in deck.cards)
    properties = {**domain.predicates, "type": domain.type}
    rows = [
        (_called(name, each), *(f"{counts[each.iri, label]:,}" for label in "ECU"))
        for name, each in properties.items()
    ]
    return _fill(_table("property", *"ECU"), rows)


def _show(card: Card, console: Console) -> None:
    _say(console, f"\n{card.question}  {card.gold} ({card.kind})")
    for line in (*card.facts, *(f"Rule: {rule}" for rule in card.rules)):
        console.print(Padding(Text(line), (0, 0, 0, 2)))


def _next(domain: Domain, settings: StudySettings, deck: Deck | None, near: int) -> Iterator[str]:
    unsure = [n for n, predicate in domain.predicates.items() if _unsure(predicate)]
    if unsure:
        yield (
            f"\nWhat these labels mean isn't plain: {', '.join(unsure[:_CARDS])}. Say it by name: "
            f"'+domain.say.{unsure[0]}=noun' ({', '.join(FORMS)}), or a clause of your own: "
            f"'+domain.say.{unsure[0]}=\"{{s}} was influenced by {{o}}\"'"
        )
    if deck is not None:
        asking = [name for name in settings.system.names if name in NEED_A_MODEL]
        cards = len(deck.cards) + near
        yield (
            f"\nNothing was asked or written. Without stage=look, {len(settings.system.names)} "
            f"systems answer; with a model (llm=endpoint, llm=local), {len(asking)} of them ask it "
            f"up to {cards * len(asking):,} prompts"
        )
