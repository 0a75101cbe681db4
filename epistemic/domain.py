"""A domain: a graph, what it may not say, and how to put both into words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyshacl
import rdflib
from omegaconf import OmegaConf
from pydantic import Field
from rdflib.namespace import OWL, RDFS

import epistemic.data
from epistemic.data.installed import InstalledSettings, read_installed
from epistemic.logic.compilation import with_vocabulary
from epistemic.logic.constraints import Constraints, read_constraints
from epistemic.logic.english import article, iri_words, number_text, uncapitalised
from epistemic.logic.graph import LABELS, TYPE, Graph, best_labels, read_graph
from epistemic.logic.oracle import Oracle
from epistemic.logic.parsing import parse_triples
from epistemic.logic.phrasing import phrasing
from epistemic.logic.terms import last_segment, rdflib_term
from epistemic.predicates import (
    Names,
    Predicate,
    PredicateSettings,
    class_rules,
    default_predicate,
    in_words,
    term_name,
)
from evidence.runtime import timings
from evidence.runtime.config import Settings, build, did_you_mean, settings_folder


class DomainSettings(Settings):
    """Where a domain's graph is and how it is spoken of; see conf/epistemic/domain/.

    `graph` and `constraints` name files of this package's data folder, or paths. `complete` lists
    classes whose members are all typed. `slow_minutes` is what pySHACL may take for all claims that
    shapes outside the compiled ones concern. With no predicates, every predicate of the graph is
    one. `installed` is a package that holds the graph, `path` the folder where it does. `say` tells
    how labels are meant, by the predicate's short name: one of `epistemic.logic.phrasing.FORMS`, or
    a clause with {s} and {o}.
    """

    name: str
    path: str | None = None
    installed: InstalledSettings | None = None
    graph: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()
    slow_minutes: float = Field(10.0, gt=0, le=1e5)
    language: str = "en"
    attribution: str = ""
    classes: dict[str, str] = Field(default_factory=dict)
    predicates: dict[str, PredicateSettings] = Field(default_factory=dict)
    say: dict[str, str] = Field(default_factory=dict)


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
      labels: IRI of a property -> its label, as words.
    """

    name: str
    graph: Graph
    constraints: Constraints
    predicates: dict[str, Predicate]
    classes: dict[str, str] = field(default_factory=dict)
    attribution: str = ""
    labels: dict[str, str] = field(default_factory=dict)

    @cached_property
    def oracle(self) -> Oracle:
        """Of the whole graph."""
        return Oracle(self.graph, self.constraints)

    @cached_property
    def by_iri(self) -> dict[str, Predicate]:
        """IRI of a predicate -> its words; being of a class is among them."""
        return {**{p.iri: p for p in self.predicates.values()}, TYPE: self.type}

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
            rules=class_rules(self.constraints, self.class_name),
            said=phrasing("type", "noun", functional=False),
        )

    def name_of(self, term: str, unit: str = "") -> str:
        """What a sentence calls a term: its label, or a number with its unit."""
        return term_name(self.graph, term, unit)

    def object_name(self, predicate: Predicate, term: str) -> str:
        """What a sentence of the predicate calls its object."""
        if predicate.iri == TYPE:
            return self.class_name(term)
        return self.name_of(term, predicate.unit)

    def names(self, terms: np.ndarray, unit: str = "") -> np.ndarray:
        """object[n]: `name_of` of each of the graph's terms, given as i32[n]."""
        names, numbers = self._labels[terms], ~self.graph.is_name[terms]
        distinct, places = np.unique(terms[numbers], return_inverse=True)
        said = [number_text(label, unit) for label in self._labels[distinct].tolist()]
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
        name = self.classes.get(iri, iri_words(iri))
        return f"{article(name)} {name}"

    def sentence(self, triple: tuple[str, str, str], holds: bool = True, template: int = 0) -> str:
        """One triple in one sentence, or its denial."""
        s, p, o = triple
        predicate = self.by_iri.get(p) or default_predicate(
            p, False, self.labels.get(p, ""), of_names=not o.startswith('"')
        )
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
        shapes = self.constraints.as_shacl() + self.constraints.slow.graph
        conforms, _, text = pyshacl.validate(closed, shacl_graph=shapes, inference="none")
        return bool(conforms), str(text)


def built_in(name: str) -> DomainSettings:
    """The settings of a domain that ships: "countries", "rivers"."""
    folder = settings_folder() / "epistemic" / "domain"
    there = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in there:
        raise ValueError(f"domain={name}: there are {', '.join(there)}")
    return build(DomainSettings, OmegaConf.load(folder / f"{name}.yaml"), "domain")


@timings.part("domain")
def load_domain(settings: DomainSettings) -> Domain:
    """Read a domain.

    Args:
      settings: where it is and how it is spoken of.

    Raises:
      ValueError: a file that can't be read, a predicate without triples, or a class that there
        isn't; says which there are.
    """
    files = [*map(find, settings.constraints)]
    constraints = read_constraints(
        *files, complete=settings.complete, slow_minutes=settings.slow_minutes
    )
    graph = _read(settings)
    if not len(graph):
        raise ValueError(f"{', '.join(settings.graph)}: no triples")
    _refuse_other_than_classes(settings.complete, graph, constraints)
    graph = with_vocabulary(graph, constraints)
    wanted = settings.predicates or _all_predicates(graph)
    for name, predicate in wanted.items():
        require_triples(graph, constraints, predicate.iri, name)
    unlabelled = {} if settings.predicates else {p.iri: iri_words(p.iri) for p in wanted.values()}
    labels = unlabelled | _labels(graph, files, settings.language)
    names = Names(
        labels,
        {**labels, **settings.classes},
        {wanted[name].iri: form for name, form in _forms(settings.say, wanted)},
    )
    predicates = {
        name: in_words(name, predicate, constraints, names, graph)
        for name, predicate in wanted.items()
    }
    return Domain(
        settings.name, graph, constraints, predicates, dict(names.classes), settings.attribution,
        dict(names.labels),
    )  # fmt: skip


def _refuse_other_than_classes(
    names: Iterable[str], graph: Graph, constraints: Constraints
) -> None:
    """Raise where `complete` names what is no class."""
    typed = graph.triples[graph.triples[:, 1] == graph.ids.get(TYPE, -1)]
    kinds = [graph.ids.get(str(kind), -1) for kind in (OWL.Class, RDFS.Class)]
    said = np.union1d(typed[:, 2], typed[np.isin(typed[:, 2], kinds), 0])
    pairs = (*constraints.domain, *constraints.range)
    classes = {graph.terms[thing] for thing in said.tolist()}
    classes |= {*constraints.hierarchy.above, *(name for _, name in pairs)}
    classes = classes.union(*(rule.class_names for rule in constraints.rules))
    for name in names:
        if name not in classes:
            raise ValueError(
                f"domain.complete: {name} is no class of the graph or its constraints"
                f"{did_you_mean(name, sorted(classes))}"
            )


def _labels(graph: Graph, files: Iterable[Path], language: str) -> dict[str, str]:
    """IRI of each property and class that has a label, in the graph or in these files -> it, as it
    stands within a sentence."""
    said, terms = graph.triples, graph.terms
    known = np.union1d(said[:, 1], said[said[:, 1] == graph.ids.get(TYPE, -1), 2])
    rows = said[np.isin(said[:, 1], graph.naming) & np.isin(said[:, 0], known)]
    given = [(terms[s], terms[p], terms[o]) for s, p, o in rows.tolist()]
    for file in files:
        given += [triple for triple in parse_triples(file) if triple[1] in LABELS]
    labels: dict[str, str] = {}
    for name in reversed(LABELS):
        labels |= best_labels(((s, o) for s, p, o in given if p == name), language)
    return {iri: uncapitalised(label) for iri, label in labels.items()}


def _forms(say: dict[str, str], wanted: dict[str, PredicateSettings]) -> Iterator[tuple[str, str]]:
    """How labels are meant, by predicates' short names."""
    for name, form in say.items():
        if name not in wanted:
            meant = did_you_mean(name, wanted)
            raise ValueError(
                f"domain.say.{name}: no such predicate{meant or ';'} there are {', '.join(wanted)}"
            )
        try:
            phrasing(name, form, functional=False)
        except ValueError as error:
            raise ValueError(f"domain.say.{name}: {error}") from None
        yield name, form


def _read(settings: DomainSettings) -> Graph:
    """The graph of a domain's files, or of the package that holds it."""
    if settings.installed is None:
        return read_graph(*map(find, settings.graph), language=settings.language)
    triples = read_installed(settings.installed, settings.name, settings.path)
    return Graph.from_triples(triples, settings.language)


def find(name: str) -> Path:
    """A path as given, else the file of that name in this package's data folder."""
    shipped = Path(next(iter(epistemic.data.__path__))) / name
    for path in (Path(name), shipped):
        if path.is_file():
            return path
    if Path(name).is_dir():
        raise ValueError(f"{name}: a folder; name the files in it")
    if name == "places.nt":
        raise ValueError(
            "places.nt: not made yet; `pip install 'goodharts-jax[geo]'`, then "
            "`python -m epistemic.data.places` in the folder that you run from"
        )
    there = sorted(path.name for path in shipped.parent.glob("*.ttl"))
    raise ValueError(f"{name}: no such file, and none of the built-in ones ({', '.join(there)})")


def require_triples(graph: Graph, constraints: Constraints, iri: str, name: str) -> None:
    """Raise where neither the predicate nor one that says the same has a triple."""
    synonyms = [graph.ids.get(same, -1) for same, _ in constraints.synonyms(iri)]
    if not np.isin(graph.triples[:, 1], synonyms).any():
        there = ", ".join(f"{p} ({n})" for p, n in predicate_counts(graph).items())
        raise ValueError(f"No triples found for predicate {name} ({iri}). There are: {there}")


def predicate_counts(graph: Graph) -> dict[str, int]:
    """IRI of each predicate -> its number of triples, the most used first."""
    predicates, counts = np.unique(graph.triples[:, 1], return_counts=True)
    by_iri = {graph.terms[p]: int(n) for p, n in zip(predicates, counts, strict=True)}
    return dict(sorted(by_iri.items(), key=lambda entry: (-entry[1], entry[0])))


_DESCRIBE = (
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#", "http://www.w3.org/2000/01/rdf-schema#",
    "http://www.w3.org/2002/07/owl#", "http://www.w3.org/ns/shacl#",
    "http://purl.org/dc/elements/1.1/description", "http://purl.org/dc/terms/description",
    *LABELS,
    *(f"http://www.w3.org/2004/02/skos/core#{name}"
      for name in ("altLabel", "hiddenLabel", "definition", "note", "scopeNote",
                   "editorialNote", "historyNote", "changeNote", "example", "notation")),
)  # fmt: skip


def _all_predicates(graph: Graph) -> dict[str, PredicateSettings]:
    """Every predicate of a graph, under its last segment; what only describes is left out.

    Of several with one last segment, those with fewer triples get a number: "name_2".
    """
    predicates: dict[str, PredicateSettings] = {}
    for iri in predicate_counts(graph):
        if iri.startswith(_DESCRIBE):
            continue
        short = last_segment(iri)
        same = sum(last_segment(other.iri) == short for other in predicates.values())
        predicates[f"{short}_{same + 1}" if same else short] = PredicateSettings(iri=iri)
    return predicates
