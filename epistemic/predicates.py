"""Predicates in words: how one is asked about, stated and denied, and its constraints said."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from pydantic import Field

from epistemic.logic.constraints import Constraints, inverse_name, symmetric_name
from epistemic.logic.english import iri_words, number_text, split_words
from epistemic.logic.graph import Graph
from epistemic.logic.kinds import Words
from epistemic.logic.phrasing import Phrasing, form_of, phrasing
from epistemic.logic.terms import last_segment, split_literal
from evidence.runtime.config import Settings


class PredicateSettings(Settings):
    """How one predicate is spoken of; see conf/epistemic/domain/countries.yaml.

    In templates, {s} is the subject and {o} the object. What is left empty is made from the label,
    which `form` says how to read: see `epistemic.logic.phrasing.phrasing`; empty: it is told from
    the label's words.
    """

    iri: str
    label: str = ""
    form: str = ""
    unit: str = ""
    complete: bool = False
    questions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    denials: tuple[str, ...] = ()
    rules: dict[str, str] = Field(default_factory=dict)


class Rule(NamedTuple):
    """What may not be said, in a sentence.

    Attributes:
      sentence: of it.
      constraints: names of those that the sentence puts into words.
      in_every_card: whether it stands in all cards about its predicate, or in some of its own.
    """

    sentence: str
    constraints: tuple[str, ...]
    in_every_card: bool = True


@dataclass(frozen=True)
class Names:
    """What sentences call properties and classes.

    Attributes:
      labels: IRI of a property -> its label, as words.
      classes: IRI of a class -> its name without an article.
      forms: IRI of a property -> how its label is meant, where that is said.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    forms: Mapping[str, str] = field(default_factory=dict)

    def class_(self, iri: str) -> str:
        """The name of a class, without an article."""
        return self.classes.get(iri) or iri_words(iri)


@dataclass(frozen=True)
class Predicate:
    """A predicate in words.

    Attributes:
      name: short, as in `cards.predicates`.
      iri: of the predicate.
      label: as in "the capital of".
      unit: follows a number.
      complete: whether what the graph doesn't state is false (so that it may be denied in a fact;
        verdicts stay open-world).
      questions, facts, denials: templates with {s} and {o}.
      rules: what may not be said of it.
      said: how its label is said; what its settings don't word is made from that.
    """

    name: str
    iri: str
    label: str
    unit: str
    complete: bool
    questions: tuple[str, ...]
    facts: tuple[str, ...]
    denials: tuple[str, ...]
    rules: tuple[Rule, ...]
    said: Phrasing


@lru_cache(maxsize=1024)
def default_predicate(
    iri: str, functional: bool, label: str = "", form: str = "", of_names: bool = True
) -> Predicate:
    """A predicate spoken of by its label alone; see `epistemic.logic.phrasing`.

    Args:
      iri: of the predicate.
      functional: whether a subject has one value.
      label: empty: the IRI's last segment.
      form: how the label is meant; empty: told from its words.
      of_names: whether its values are things, not numbers, dates or texts.
    """
    label = label or iri_words(iri)
    said = phrasing(label, form or form_of(label, of_names), functional)
    return Predicate(
        name=last_segment(iri),
        iri=iri,
        label=label,
        unit="",
        complete=False,
        questions=said.questions,
        facts=said.facts,
        denials=said.denials,
        rules=(),
        said=said,
    )


def in_words(
    name: str,
    settings: PredicateSettings,
    constraints: Constraints,
    names: Names | None = None,
    graph: Graph | None = None,
) -> Predicate:
    """A predicate in words: the settings', and what they leave out made from its label.

    Args:
      name: of the predicate, short.
      settings: its words.
      constraints: of its domain.
      names: of properties and classes.
      graph: where a rule that lists values finds their names, and what sort of values there are.

    Raises:
      ValueError: its form is none, and no clause.
    """
    names = names or Names()
    iri = settings.iri
    predicate = default_predicate(
        iri,
        constraints.functional(iri),
        settings.label or names.labels.get(iri) or split_words(name),
        settings.form or names.forms.get(iri, ""),
        graph is None or _of_names(graph, iri),
    )
    predicate = replace(
        predicate,
        name=name,
        unit=settings.unit,
        complete=settings.complete,
        questions=settings.questions or predicate.questions,
        facts=settings.facts or predicate.facts,
        denials=settings.denials or predicate.denials,
    )

    def said(other: str) -> Phrasing:
        of_names = graph is None or _of_names(graph, other)
        label, form = names.labels.get(other, ""), names.forms.get(other, "")
        functional = constraints.functional(other)
        return default_predicate(other, functional, label, form, of_names).said

    def apart(iri: str) -> list[str]:
        pairs = [pair for rule in constraints.rules for pair in rule.disjoint_pairs if iri in pair]
        return sorted(names.class_(other) for pair in pairs for other in pair if other != iri)

    words = Words(
        said=predicate.said,
        other=said,
        term=lambda term: term_name(graph, term, predicate.unit),
        class_=names.class_,
        apart=apart,
    )
    return replace(predicate, rules=_rules(predicate, settings.rules, constraints, words))


def _of_names(graph: Graph, iri: str) -> bool:
    """Whether a predicate has things among its values."""
    values = graph.triples[graph.triples[:, 1] == graph.ids.get(iri, -1), 2]
    return not len(values) or bool(graph.is_name[values].any())


def _rules(
    predicate: Predicate, sentences: dict[str, str], constraints: Constraints, words: Words
) -> tuple[Rule, ...]:
    """Sentences for the constraints on a predicate that a card can rest on.

    Args:
      predicate: in words, rules apart.
      sentences: kind of constraint -> its sentence, where there is one.
      constraints: of its domain.
      words: what sentences call things.
    """
    rules: list[Rule] = []
    iri, said = predicate.iri, predicate.said
    for rule in constraints.of_all(iri):
        own = sentences.get(rule.kind) or sentences.get(rule.card_kind)
        sentence = own or rule.say(words)
        if sentence:
            names = (rule.name, *rule.also_said(constraints.rules))
            rules.append(Rule(sentence, names, rule.joins_every_card))
    if iri in constraints.symmetric:
        rules.append(Rule(sentences.get("symmetric", said.both_ways()), (symmetric_name(iri),)))
    for pair in sorted(constraints.inverse):
        if iri in pair:
            default = said.exactly_when(words.other(pair[1] if pair[0] == iri else pair[0]))
            rules.append(Rule(sentences.get("inverse", default), (inverse_name(*pair),)))
    return tuple(rules)


def class_rules(constraints: Constraints, say: Callable[[str], str]) -> tuple[Rule, ...]:
    """Sentences that keep classes apart and order them.

    Args:
      constraints: of a domain.
      say: IRI of a class -> its name with an article.
    """
    apart = [(rule, pair) for rule in constraints.rules for pair in rule.disjoint_pairs]
    names = sorted({name for _, pair in apart for name in pair})
    rules = []
    if len(apart) == len(names) * (len(names) - 1) // 2 > 1:
        sentence = f"Nothing is more than one of these: {', '.join(map(say, names))}."
        rules.append(Rule(sentence, tuple(rule.name for rule, _ in apart)))
    else:
        rules += [
            Rule(f"Nothing is both {say(one)} and {say(other)}.", (rule.name,))
            for rule, (one, other) in apart
        ]
    for child, parent in sorted(constraints.subclass):
        rules.append(Rule(f"Whatever is {say(child)} is {say(parent)}.", ()))
    return tuple(rules)


def term_name(graph: Graph | None, term: str, unit: str = "") -> str:
    """What a sentence calls a term of the graph, or one that it hasn't heard of."""
    parts = split_literal(term)
    if parts is not None:
        return number_text(parts.lexical, unit)
    place = graph.ids.get(term) if graph is not None else None
    return graph.labels[place] if graph is not None and place is not None else last_segment(term)
