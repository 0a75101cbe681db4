"""Predicates in words: how one is asked about, stated and denied, and its constraints said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import Field

from epistemic.logic.constraints import Constraints, inverse_name, symmetric_name
from epistemic.logic.english import article, iri_words, number_text, split_words
from epistemic.logic.graph import Graph
from epistemic.logic.kinds import Words
from epistemic.logic.terms import last_segment, split_literal
from evidence.runtime.config import Settings


class PredicateSettings(Settings):
    """How one predicate is spoken of; see conf/epistemic/domain/countries.yaml.

    In templates, {s} is the subject and {o} the object. What is left empty is made from the label.
    """

    iri: str
    label: str = ""
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


def default_predicate(iri: str, functional: bool, label: str = "") -> Predicate:
    """A predicate spoken of by its label alone; 'the' for one value, 'a' for several."""
    label = label or iri_words(iri)
    the = "the" if functional else article(label)
    its = the if not functional else "its"
    return Predicate(
        name=last_segment(iri),
        iri=iri,
        label=label,
        unit="",
        complete=False,
        questions=(
            f"Is {{o}} {the} {label} of {{s}}?",
            f"Does {{s}} have {{o}} as {its} {label}?",
            f"Is it true that {the} {label} of {{s}} is {{o}}?",
        ),
        facts=(
            f"{{o}} is {the} {label} of {{s}}.",
            f"{{s}} has {{o}} as {its} {label}.",
            f"{the.capitalize()} {label} of {{s}} is {{o}}.",
        ),
        denials=(
            f"{{o}} is not {the} {label} of {{s}}.",
            f"{{s}} does not have {{o}} as {its} {label}.",
            f"It is not true that {the} {label} of {{s}} is {{o}}.",
        ),
        rules=(),
    )


def in_words(
    name: str,
    settings: PredicateSettings,
    constraints: Constraints,
    classes: dict[str, str] | None = None,
    graph: Graph | None = None,
) -> Predicate:
    """A predicate in words: the settings', and what they leave out made from its label.

    Args:
      name: of the predicate, short.
      settings: its words.
      constraints: of its domain.
      classes: IRI of a class -> its name in a sentence.
      graph: where a rule that lists values finds their names.
    """
    default = default_predicate(
        settings.iri, constraints.functional(settings.iri), settings.label or split_words(name)
    )
    predicate = replace(
        default,
        name=name,
        unit=settings.unit,
        complete=settings.complete,
        questions=settings.questions or default.questions,
        facts=settings.facts or default.facts,
        denials=settings.denials or default.denials,
    )
    names = classes or {}
    words = Words(
        label=predicate.label,
        term=lambda term: term_name(graph, term, predicate.unit),
        class_=lambda iri: names.get(iri, iri_words(iri)),
    )
    return replace(predicate, rules=_rules(predicate, settings.rules, constraints, words))


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
    iri, label = predicate.iri, predicate.label
    for rule in constraints.of_all(iri):
        sentence = sentences.get(rule.kind) or rule.say(words)
        if sentence:
            names = (rule.name, *rule.also_said(constraints.rules))
            rules.append(Rule(sentence, names, rule.joins_every_card))
    if iri in constraints.symmetric:
        default = f"If one thing is {article(label)} {label} of another, then so is the other."
        rules.append(Rule(sentences.get("symmetric", default), (symmetric_name(iri),)))
    for pair in sorted(constraints.inverse):
        if iri in pair:
            other = iri_words(pair[1] if pair[0] == iri else pair[0])
            default = (
                f"One thing has another as {article(label)} {label} exactly when the other has "
                f"it as {article(other)} {other}."
            )
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
