"""A domain: a graph, what it may not say, and how to put both into words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyshacl
import rdflib
from omegaconf import OmegaConf
from pydantic import Field
from rdflib.namespace import XSD

import epistemic.data
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import (
    Constraint,
    Constraints,
    inverse_name,
    read_constraints,
    symmetric_name,
)
from epistemic.logic.draws import Draws
from epistemic.logic.graph import LABEL, TYPE, Graph, rdflib_term, read_graph, split_literal
from epistemic.logic.oracle import Oracle
from evidence.runtime.config import Settings, build, settings_folder


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


class DomainSettings(Settings):
    """Where a domain's graph is and how it is spoken of; see conf/epistemic/domain/.

    `graph` and `constraints` name files of this package's data folder, or paths. `complete` lists
    classes whose members are all typed. With no predicates, every predicate of the graph is one.
    """

    name: str
    graph: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    language: str = "en"
    attribution: str = ""
    classes: dict[str, str] = Field(default_factory=dict)
    predicates: dict[str, PredicateSettings] = Field(default_factory=dict)


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
      rules: (sentence, names of the constraints that it puts into words), of this predicate.
    """

    name: str
    iri: str
    label: str
    unit: str
    complete: bool
    questions: tuple[str, ...]
    facts: tuple[str, ...]
    denials: tuple[str, ...]
    rules: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, eq=False)
class Domain:
    """A graph with its constraints and its words.

    Attributes:
      name: of the domain.
      graph: whole; its table holds the constraints' vocabulary, so ids are the oracle's too.
      constraints: what it may not say.
      predicates: short name -> predicate.
      classes: IRI of a class -> its name in a sentence, such as "body of water".
      attribution: what the data's licence asks to be said.
    """

    name: str
    graph: Graph
    constraints: Constraints
    predicates: dict[str, Predicate]
    classes: dict[str, str] = field(default_factory=dict)
    attribution: str = ""

    @cached_property
    def oracle(self) -> Oracle:
        """Of the whole graph."""
        return Oracle(self.graph, self.constraints)

    @cached_property
    def by_iri(self) -> dict[str, Predicate]:
        found = {predicate.iri: predicate for predicate in self.predicates.values()}
        return {**found, TYPE: self.type}

    @cached_property
    def type(self) -> Predicate:
        """Being of a class, as a predicate; its objects are said with their article."""
        return Predicate(
            name="type",
            iri=TYPE,
            label="type",
            unit="",
            complete=False,
            questions=("Is {s} {o}?", "Is it true that {s} is {o}?", "Does {s} count as {o}?"),
            facts=("{s} is {o}.", "It is known that {s} is {o}.", "{s} counts as {o}."),
            denials=("{s} is not {o}.", "It is not true that {s} is {o}."),
            rules=_class_rules(self.constraints, self.class_name),
        )

    def name_of(self, term: str, unit: str = "") -> str:
        """What a sentence calls a term: its label, or a number with its unit."""
        return _name_in(self.graph, term, unit)

    def object_name(self, predicate: Predicate, term: str) -> str:
        """What a sentence of the predicate calls its object."""
        if predicate.iri == TYPE:
            return self.class_name(term)
        return self.name_of(term, predicate.unit)

    def names(self, terms: np.ndarray, unit: str = "") -> np.ndarray:
        """object[n]: `name_of` of each of the graph's terms, given as i32[n]."""
        names, numbers = self._labels[terms], ~self.graph.is_name[terms]
        distinct, places = np.unique(terms[numbers], return_inverse=True)
        said = [_number_name(label, unit) for label in self._labels[distinct].tolist()]
        names[numbers] = np.array(said, object)[places]
        return names

    def object_names(self, predicate: Predicate, terms: np.ndarray) -> np.ndarray:
        """object[n]: `object_name` of each of the graph's terms, given as i32[n]."""
        if predicate.iri != TYPE:
            return self.names(terms, predicate.unit)
        classes, places = np.unique(terms, return_inverse=True)
        said = [self.class_name(self.graph.terms[term]) for term in classes.tolist()]
        return np.array(said, object)[places]

    @cached_property
    def _labels(self) -> np.ndarray:
        return np.array(self.graph.labels, object)

    def class_name(self, iri: str) -> str:
        """A class with its article, such as "a body of water"."""
        kind = self.classes.get(iri, _words(iri))
        return f"{_article(kind)} {kind}"

    def sentence(self, triple: tuple[str, str, str], holds: bool = True, template: int = 0) -> str:
        """One triple in one sentence, or its denial."""
        s, p, o = triple
        predicate = self.by_iri.get(p) or default_predicate(p, False)
        templates = predicate.facts if holds else predicate.denials
        return templates[template % len(templates)].format(
            s=self.name_of(s), o=self.object_name(predicate, o)
        )

    def validate(self) -> tuple[bool, str]:
        """pySHACL's verdict on the whole graph, closed under its logic, and its report."""
        closed = rdflib.Graph()
        texts = self.oracle.graph.terms
        stop = len(texts)
        spoken = self.oracle.compiled.triples
        for row in spoken[(spoken[:, 1] < stop)]:
            closed.add(tuple(rdflib_term(texts[term]) for term in row))  # type: ignore[arg-type]
        shapes = self.constraints.as_shacl() + self.constraints.slow
        conforms, _, text = pyshacl.validate(closed, shacl_graph=shapes, inference="none")
        return bool(conforms), str(text)


def built_in(name: str) -> DomainSettings:
    """The settings of a domain that ships: "countries", "rivers"."""
    folder = settings_folder() / "epistemic" / "domain"
    there = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in there:
        raise ValueError(f"domain={name}: there are {', '.join(there)}")
    return build(DomainSettings, OmegaConf.load(folder / f"{name}.yaml"), "domain")


def load_domain(settings: DomainSettings) -> Domain:
    """Read a domain.

    Args:
      settings: where it is and how it is spoken of.

    Raises:
      ValueError: a file that can't be read, or a predicate without triples; lists those there are.
    """
    constraints = read_constraints(*map(find, settings.constraints), complete=settings.complete)
    graph = read_graph(*map(find, settings.graph), language=settings.language)
    graph = with_vocabulary(graph, constraints)
    wanted = settings.predicates or _all_predicates(graph)
    for name, predicate in wanted.items():
        require_triples(graph, constraints, predicate.iri, name)
    classes = dict(settings.classes)
    predicates = {
        name: spoken(name, predicate, constraints, classes, graph)
        for name, predicate in wanted.items()
    }
    return Domain(settings.name, graph, constraints, predicates, classes, settings.attribution)


def find(name: str) -> Path:
    """A path as given, else the file of that name in this package's data folder."""
    shipped = Path(next(iter(epistemic.data.__path__))) / name
    for path in (Path(name), shipped):
        if path.is_file():
            return path
    if name == "places.nt":
        raise ValueError(
            "places.nt: not made yet; `pip install 'goodharts-jax[geo]'`, then "
            "`python -m epistemic.data.places` in the folder that you run from"
        )
    there = sorted(path.name for path in shipped.parent.glob("*.ttl"))
    raise ValueError(f"{name}: no such file, and none of the built-in ones ({', '.join(there)})")


def require_triples(graph: Graph, constraints: Constraints, iri: str, name: str) -> None:
    """Raise where neither the predicate nor one that says the same has a triple."""
    sayings = [graph.ids.get(same, -1) for same, _ in constraints.sayings(iri)]
    if not np.isin(graph.triples[:, 1], sayings).any():
        there = ", ".join(f"{p} ({n})" for p, n in predicate_counts(graph).items())
        raise ValueError(f"No triples found for predicate {name} ({iri}). There are: {there}")


def predicate_counts(graph: Graph) -> dict[str, int]:
    """IRI of each predicate -> its number of triples, the most used first."""
    predicates, counts = np.unique(graph.triples[:, 1], return_counts=True)
    found = {graph.terms[p]: int(n) for p, n in zip(predicates, counts, strict=True)}
    return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))


def degrade(graph: Graph, iris: list[str], keep: float, wrong: float, seed: int) -> Graph:
    """Forget a share of the predicates' triples and swap the objects of a share of the rest for
    others that the predicate has.

    The same seed forgets nested sets: what keep=0.7 lacks, keep=0.5 lacks too.
    """
    triples = graph.triples
    ours = np.isin(triples[:, 1], [graph.ids[iri] for iri in iris if iri in graph.ids])
    kept = ~ours | (Draws(seed, stream=1).uniform(len(triples)) < keep)
    falsify = ours & (Draws(seed, stream=2).uniform(len(triples)) < wrong)
    changed = triples.copy()
    for p in np.unique(triples[falsify, 1]):
        rows = np.flatnonzero(falsify & (triples[:, 1] == p))
        pool, old = np.sort(triples[triples[:, 1] == p, 2]), triples[rows, 2]
        first, after = (np.searchsorted(pool, old, side) for side in ("left", "right"))
        others = len(pool) - (after - first)
        drawn = (Draws(seed, stream=3).uniform(len(rows)) * others).astype(int)
        drawn += np.where(drawn >= first, after - first, 0)
        changed[rows[others > 0], 2] = pool[drawn[others > 0]]
    return graph.with_triples(changed[kept])


def _all_predicates(graph: Graph) -> dict[str, PredicateSettings]:
    """Every predicate of a graph, under its last segment; what only describes is left out."""
    found: dict[str, PredicateSettings] = {}
    for iri in predicate_counts(graph):
        if iri not in (TYPE, LABEL) and not iri.startswith("http://www.w3.org/"):
            found.setdefault(_last_segment(iri), PredicateSettings(iri=iri))
    return found


def default_predicate(iri: str, functional: bool, label: str = "") -> Predicate:
    """A predicate spoken of by its label alone; 'the' for one value, 'a' for several."""
    label = label or _words(iri)
    the = "the" if functional else _article(label)
    return Predicate(
        name=_last_segment(iri),
        iri=iri,
        label=label,
        unit="",
        complete=False,
        questions=(
            f"Is {{o}} {the} {label} of {{s}}?",
            f"Does {{s}} have {{o}} as {the if not functional else 'its'} {label}?",
            f"Is it true that {the} {label} of {{s}} is {{o}}?",
        ),
        facts=(
            f"{{o}} is {the} {label} of {{s}}.",
            f"{{s}} has {{o}} as {the if not functional else 'its'} {label}.",
            f"{the.capitalize()} {label} of {{s}} is {{o}}.",
        ),
        denials=(
            f"{{o}} is not {the} {label} of {{s}}.",
            f"{{s}} does not have {{o}} as {the if not functional else 'its'} {label}.",
            f"It is not true that {the} {label} of {{s}} is {{o}}.",
        ),
        rules=(),
    )


def spoken(
    name: str,
    settings: PredicateSettings,
    constraints: Constraints,
    classes: dict[str, str] | None = None,
    graph: Graph | None = None,
) -> Predicate:
    """A predicate in words: the settings', and what they leave out made from its label.

    The graph is where a rule that lists values finds their names.
    """
    default = default_predicate(
        settings.iri, constraints.functional(settings.iri), settings.label or _split_camel(name)
    )
    words = Predicate(
        name,
        settings.iri,
        default.label,
        settings.unit,
        settings.complete,
        settings.questions or default.questions,
        settings.facts or default.facts,
        settings.denials or default.denials,
        (),
    )
    rules = _rules(words, settings.rules, constraints, classes or {}, graph)
    return Predicate(**{**words.__dict__, "rules": rules})


def _rules(
    predicate: Predicate,
    sentences: dict[str, str],
    constraints: Constraints,
    classes: dict[str, str],
    graph: Graph | None,
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Sentences for the constraints on a predicate that a card can rest on."""
    rules: list[tuple[str, tuple[str, ...]]] = []
    iri, label = predicate.iri, predicate.label
    for rule in constraints.of(iri):
        sentence = sentences.get(rule.kind) or _default_rule(rule, predicate, classes, graph)
        if sentence:
            rules.append((sentence, (rule.name, *_apart(rule, constraints))))
    if iri in constraints.symmetric:
        default = f"If one thing is {_article(label)} {label} of another, then so is the other."
        rules.append((sentences.get("symmetric", default), (symmetric_name(iri),)))
    for pair in sorted(constraints.inverse):
        if iri in pair:
            other = _words(pair[1] if pair[0] == iri else pair[0])
            default = (
                f"One thing has another as {_article(label)} {label} exactly when the other has "
                f"it as {_article(other)} {other}."
            )
            rules.append((sentences.get("inverse", default), (inverse_name(*pair),)))
    return tuple(rules)


def _class_rules(
    constraints: Constraints, say: Callable[[str], str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Sentences that keep classes apart and order them."""
    apart = [rule for rule in constraints.rules if rule.kind == "disjoint"]
    names = sorted({name for rule in apart for name in (rule.predicate, *rule.value)})
    rules: list[tuple[str, tuple[str, ...]]] = []
    if len(apart) == len(names) * (len(names) - 1) // 2 > 1:
        sentence = f"Nothing is more than one of these: {', '.join(map(say, names))}."
        rules.append((sentence, tuple(rule.name for rule in apart)))
    else:
        for rule in apart:
            sentence = f"Nothing is both {say(rule.predicate)} and {say(rule.value[0])}."
            rules.append((sentence, (rule.name,)))
    for child, parent in sorted(constraints.subclass):
        rules.append((f"Whatever is {say(child)} is {say(parent)}.", ()))
    return tuple(rules)


def _apart(rule: Constraint, constraints: Constraints) -> tuple[str, ...]:
    """For a rule on a class: the names of the constraints that keep other classes apart from it."""
    if rule.kind != "class":
        return ()
    return tuple(
        other.name
        for other in constraints.rules
        if other.kind == "disjoint" and rule.value[0] in (other.predicate, *other.value)
    )


# A list of more values than this isn't read out.
_LONGEST_LIST = 12
_INTEGER = str(XSD.integer)


def _default_rule(
    rule: Constraint, predicate: Predicate, classes: dict[str, str], graph: Graph | None
) -> str:
    label = predicate.label
    if rule.kind == "max_count":
        several = "one" if rule.value[0] == "1" else rule.value[0]
        return f"Nothing has more than {several} {label}."
    if rule.kind == "inverse_functional":
        return f"Nothing is the {label} of more than one thing."
    if rule.kind == "class":
        kind = classes.get(rule.value[0], _words(rule.value[0]))
        return (
            f"Only {_article(kind)} {kind} can be {_article(label)} {label}, "
            f"and nothing of another kind is {_article(kind)} {kind}."
        )
    if rule.kind == "less_than":
        return f"The {label} of anything is less than its {_words(rule.value[0])}."
    if rule.kind == "asymmetric":
        return f"If one thing has another as {label}, then not the other way round."
    if rule.kind == "irreflexive":
        return f"Nothing is its own {label}."
    if rule.kind == "datatype" and rule.value == (_INTEGER,):
        return f"The {label} of anything is a whole number."
    if rule.kind in _BOUND_WORDS:
        bound = _name_in(None, rule.value[0], predicate.unit)
        return f"The {label} of anything is {_BOUND_WORDS[rule.kind].format(bound)}."
    if rule.kind == "in" and len(rule.value) <= _LONGEST_LIST:
        names = sorted(_name_in(graph, value, predicate.unit) for value in rule.value)
        return f"The {label} of anything is one of these: {', '.join(names)}."
    return ""


_BOUND_WORDS = {
    "min_inclusive": "{} or more",
    "min_exclusive": "more than {}",
    "max_inclusive": "{} or less",
    "max_exclusive": "less than {}",
}


def _name_in(graph: Graph | None, term: str, unit: str) -> str:
    """What a sentence calls a term of the graph, or one that it hasn't heard of."""
    parts = split_literal(term)
    if parts is not None:
        return _number_name(parts[0], unit)
    place = graph.ids.get(term) if graph is not None else None
    return graph.labels[place] if graph is not None and place is not None else _last_segment(term)


def _number_name(lexical: str, unit: str) -> str:
    """A literal's text, thousands of a number apart, with its unit."""
    if len(lexical) > 3 and lexical.removeprefix("-").isdecimal() and lexical.isascii():
        lexical = f"{int(lexical):,}"
    return f"{lexical} {unit}".rstrip()


def _last_segment(iri: str) -> str:
    return re.split(r"[#/]", iri.rstrip("/#"))[-1]


def _split_camel(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").lower()


def _words(iri: str) -> str:
    return _split_camel(_last_segment(iri))


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"
