"""The systems under test, by the names that results use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, field_validator

from epistemic.cards import Card
from epistemic.domain import Domain, find
from epistemic.linking.extraction import Finder
from epistemic.linking.names import Names, read_aliases
from epistemic.logic.graph import Graph
from epistemic.logic.oracle import Oracle
from epistemic.results import Role
from epistemic.systems.base import Masked, Query, Response, System, query_of
from epistemic.systems.controls import Always, EntailedNo, Random, Surface
from epistemic.systems.language import Asked, GraphFacts, card_facts
from epistemic.systems.licence import Context, Licence, Licensed
from epistemic.systems.linked import Linked
from epistemic.systems.replay import Replay
from epistemic.systems.retrieval import BM25, CorpusFacts, MiniLM, Retriever, corpus_of
from evidence.answers import Answer
from evidence.runtime.config import Settings
from evidence.runtime.files import file_digest, target_digest
from evidence.runtime.language_models import Model

__all__ = [
    "BLIND",
    "CONTROLS",
    "LICENSED",
    "NAMES",
    "NEED_A_MODEL",
    "Answer",
    "Query",
    "Response",
    "Setting",
    "System",
    "SystemSettings",
    "build_system",
    "file_behind",
    "query_of",
    "role_of",
]


class SystemSettings(Settings):
    """Which systems answer, and how.

    Attributes:
      names: the systems, by name.
      retriever: what `rag` finds sentences by: "bm25" or "minilm" (extra `rag`).
      top_k: sentences that `rag` puts into a prompt.
      neighbours: triples that `graph_rag` puts into a prompt.
      replies: the JSONL file of `replay`.
      target: the class of `custom`, as "module:Class"; it is built without arguments.
      aliases: files of further names, by which `graph_rag_linked` finds claims beside the labels.
      similarity: percent from which on it takes a name for a misspelt one; None: never.
    """

    names: tuple[str, ...] = Field(min_length=1)
    retriever: Literal["bm25", "minilm"] = "bm25"
    top_k: int = Field(5, ge=1, le=1000)
    neighbours: int = Field(12, ge=1, le=1000)
    replies: str | None = None
    target: str | None = None
    aliases: tuple[str, ...] = ()
    similarity: float | None = Field(85.0, gt=0, le=100)

    @field_validator("names")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in NAMES:
                raise ValueError(f"system.names: no system is called {name!r}; {', '.join(NAMES)}")
        if len(set(names)) < len(names):
            raise ValueError("system.names: a system is named twice")
        return names


@dataclass(frozen=True)
class Setting:
    """What systems are built from.

    Attributes:
      cards: the deck; only the control `surface` looks at its gold answers.
      domain: names, wording and constraints.
      graph: the knowledge graph that systems know, which may be a degraded one.
      settings: how they answer.
      model: the language model, or None.
      seed: for `random`.
    """

    cards: Sequence[Card]
    domain: Domain
    graph: Graph
    settings: SystemSettings
    model: Model | None = None
    seed: int = 0


def build_system(name: str, setting: Setting) -> System:
    """A system by its name.

    Raises:
      ValueError: it needs something that the setting lacks; says what.
    """
    if name in NEED_A_MODEL and setting.model is None:
        raise ValueError(f"system {name} asks a language model, and there is none")
    return _SYSTEMS[name].build(setting)


def role_of(name: str) -> Role:
    """What a system is compared as."""
    return _SYSTEMS[name].role


def file_behind(name: str, settings: SystemSettings) -> str | None:
    """Digest of what a system is made of: recorded answers, further names, a user's own module."""
    return _SYSTEMS[name].file(settings)


def _oracle(setting: Setting) -> Oracle:
    return Oracle(setting.graph, setting.domain.constraints)


def _model(setting: Setting) -> Model:
    assert setting.model is not None
    return setting.model


def _rag(setting: Setting) -> System:
    corpus = corpus_of(setting.domain, setting.graph)
    retriever: Retriever = BM25(corpus) if setting.settings.retriever == "bm25" else MiniLM(corpus)
    return Asked(_model(setting), CorpusFacts(corpus, retriever, setting.settings.top_k))


def _graph_rag_unlicensed(setting: Setting) -> System:
    facts = GraphFacts(setting.domain, setting.graph, setting.settings.neighbours)
    return Asked(_model(setting), facts)


def _graph_rag_linked(setting: Setting) -> System:
    told = setting.settings
    aliases = read_aliases(*map(str, map(find, told.aliases)))
    names = Names(setting.graph, aliases, told.similarity)
    finder = Finder(setting.domain, setting.graph, names)
    asked = _graph_rag_unlicensed(setting)
    return Linked(asked, _oracle(setting), finder, setting.domain.constraints)


def _replay(setting: Setting) -> System:
    if setting.settings.replies is None:
        raise ValueError("the system replay needs replies: the JSONL file of recorded answers")
    return Replay(setting.settings.replies)


def _custom(setting: Setting) -> System:
    target = setting.settings.target
    module, _, name = (target or "").partition(":")
    if not module or not name:
        raise ValueError(f"target {target!r} of the system custom: give it as my_module:MySystem")
    # A user's file lies where the command is run, which `python -m` has on its path and a console
    # script has not.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return Masked(getattr(importlib.import_module(module), name)())
    except (ImportError, AttributeError) as error:
        raise ValueError(f"target {target!r} of the system custom: {error}") from error


def _replies_digest(settings: SystemSettings) -> str | None:
    return None if settings.replies is None else file_digest(settings.replies)


def _aliases_digest(settings: SystemSettings) -> str | None:
    return " ".join(file_digest(find(name)) for name in settings.aliases) or None


def _target_digest(settings: SystemSettings) -> str | None:
    return None if settings.target is None else target_digest(settings.target)


class _Entry(NamedTuple):
    """A system as the study knows it.

    Attributes:
      build: makes it.
      role: "ranked", "control" or "reference".
      asks: whether it asks a language model.
      licensed: whether its answers leave only with a proof.
      blind: whether it is shown the question alone, without the card's facts.
      file: digest of the files that it is made of, or None.
    """

    build: Callable[[Setting], System]
    role: Role = "ranked"
    asks: bool = False
    licensed: bool = False
    blind: bool = False
    file: Callable[[SystemSettings], str | None] = lambda settings: None


_SYSTEMS = {
    "kg_oracle": _Entry(lambda s: Context(s.domain.constraints, _oracle(s)), "reference"),
    "kg_context": _Entry(lambda s: Context(s.domain.constraints)),
    "graph_rag_licence": _Entry(lambda s: Licence(_oracle(s))),
    "llm": _Entry(lambda s: Asked(_model(s), card_facts), asks=True),
    "llm_without_facts": _Entry(lambda s: Asked(_model(s), None), asks=True, blind=True),
    "rag": _Entry(_rag, asks=True),
    "graph_rag": _Entry(
        lambda s: Licensed(_graph_rag_unlicensed(s), _oracle(s)), asks=True, licensed=True
    ),
    "graph_rag_linked": _Entry(_graph_rag_linked, asks=True, licensed=True, file=_aliases_digest),
    "graph_rag_unlicensed": _Entry(_graph_rag_unlicensed, asks=True),
    "replay": _Entry(_replay, file=_replies_digest),
    "custom": _Entry(_custom, file=_target_digest),
    "always_yes": _Entry(lambda s: Always(Answer.YES), "control"),
    "always_no": _Entry(lambda s: Always(Answer.NO), "control"),
    "always_unknown": _Entry(lambda s: Always(Answer.UNKNOWN), "control"),
    "random": _Entry(lambda s: Random(s.seed), "control"),
    "entailed_no": _Entry(lambda s: EntailedNo(), "control"),
    "surface": _Entry(lambda s: Surface(s.cards), "control"),
}
NAMES = tuple(_SYSTEMS)
CONTROLS = tuple(name for name, entry in _SYSTEMS.items() if entry.role == "control")
"""Answerers that must not look ideal; shown beside the ranked systems."""
NEED_A_MODEL = tuple(name for name, entry in _SYSTEMS.items() if entry.asks)
LICENSED = tuple(name for name, entry in _SYSTEMS.items() if entry.licensed)
BLIND = tuple(name for name, entry in _SYSTEMS.items() if entry.blind)
"""Those that answer from what they know of the world: no card's gold is theirs, see `Results`."""
