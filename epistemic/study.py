"""One study over an output folder, stage by stage; every stage reads the files of those before.

cards.jsonl, near_miss.jsonl     the decks; beside each a .json: hash, counts, leakage audit
answers/NAME.jsonl               every answer of a system (near_miss/answers/ likewise)
quality.json, skipped.json       the sweep over graph quality; systems left out, and why
results.json, metrics.json       scores; metrics.json holds the plain values alone
figures/, report.html            what people look at
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from rich.console import Console

from epistemic import report
from epistemic.cards import Card, deck_hash, read_cards, write_cards
from epistemic.decks.deck import CardSettings, deck_graph, make_cards
from epistemic.decks.leakage import audit
from epistemic.decks.near_miss import NearMissSettings, make_near_misses
from epistemic.domain import Domain, DomainSettings, degrade, find, load_domain
from epistemic.evaluate import evaluate, read_rows, run_digest
from epistemic.export import write_lm_eval_task
from epistemic.logic.alone import judge_cards
from epistemic.logic.graph import Graph
from epistemic.logic.oracle import Oracle
from epistemic.scoring import assessment
from epistemic.scoring.thesis import load_thesis
from epistemic.systems import NEED_A_MODEL, Setting, System, SystemSettings, build_system
from epistemic.systems.licence import Licence, Licensed
from epistemic.systems.replay import Replay
from evidence import load
from evidence.results import Manifest
from evidence.runtime.config import Settings, build
from evidence.runtime.files import (
    file_digest,
    read_jsonl,
    target_digest,
    write_json,
    write_text,
)
from evidence.runtime.language_models import Model, ModelSettings, open_model

Stage = Literal["all", "cards", "near_miss", "eval", "metrics", "report", "export"]


class KnowledgeSettings(Settings):
    """How good the graph is that systems know.

    Attributes:
      keep: share of triples kept.
      wrong: share of those whose object is swapped for another.
    """

    keep: float = Field(ge=0, le=1)
    wrong: float = Field(ge=0, le=1)


class QualitySettings(Settings):
    """Points of the sweep over graph quality: every `keep` with every `wrong`."""

    keep: tuple[float, ...]
    wrong: tuple[float, ...]


class StudySettings(Settings):
    """Everything that decides a study; see conf/epistemic/config.yaml.

    Attributes:
      stage: what is done; "all" is everything but "export".
      seed: of `random`, the bootstrap and the degraded graphs; decks have seeds of their own.
      deck: a deck that is there already, used instead of making one; None: one is made.
      shacl: validate the whole graph with pySHACL first.
      compilation_cache: see `evidence.runtime.devices.configure`.
    """

    stage: Stage
    seed: int
    deck: str | None
    shacl: bool = Field(alias="validate")
    compilation_cache: bool | str
    domain: DomainSettings
    cards: CardSettings
    near_miss: NearMissSettings
    system: SystemSettings
    llm: ModelSettings
    kg: KnowledgeSettings
    quality: QualitySettings


def read(config: Mapping[str, Any]) -> StudySettings:
    """Plain configuration as settings.

    Raises:
      ValueError: one line a problem, naming the setting.
    """
    groups = {
        name: build(field.annotation, config[name], at=name)
        for name, field in StudySettings.model_fields.items()
        if name in config and isinstance(field.annotation, type)
        and issubclass(field.annotation, Settings)
    }  # fmt: skip
    return build(StudySettings, {**config, **groups}, at="config")


class Study:
    """The stages of one study.

    Args:
      settings: what is done.
      folder: where its files are.
      config: the configuration as plain data, for the manifest.
      console: what is said to people goes there.
    """

    def __init__(
        self, settings: StudySettings, folder: Path, config: Mapping[str, Any], console: Console
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._config = config
        self._console = console
        self._domain: Domain = load_domain(settings.domain)

    def run(self) -> None:
        """The stage that the settings name, or all of them."""
        stages = {
            "cards": self._make_cards,
            "near_miss": self._make_near_misses,
            "eval": self._evaluate,
            "metrics": self._score,
            "report": self._report,
        }
        wanted = self._settings.stage
        if wanted == "export":
            self._export()
        for name, stage in stages.items():
            if wanted in ("all", name):
                stage()

    def _make_cards(self) -> None:
        if self._settings.shacl:
            self._validate()
        if self._settings.deck is None:
            deck = make_cards(self._domain, self._settings.cards)
            self._save_deck("cards", deck.cards, deck.counts, deck.graph)
        else:
            cards = read_cards(_there("deck", self._settings.deck))
            known = deck_graph(self._domain, self._settings.cards)
            self._same_golds(cards, known)
            parts = {part: Counter(getattr(c, part) for c in cards) for part in ("label", "kind")}
            counts = {k: dict(sorted(v.items())) for k, v in parts.items()}
            self._save_deck("cards", cards, counts, known)

    def _same_golds(self, cards: Sequence[Card], known: Graph) -> None:
        """Refuse a deck whose golds aren't those of its facts, rules and this graph."""
        stated = [card for card in cards if card.stated]
        constraints = self._domain.constraints
        verdicts = judge_cards(stated, constraints, Oracle(known, constraints))
        other = [c.id for c, v in zip(stated, verdicts, strict=True) if v.label != c.label]
        if other:
            raise ValueError(
                f"deck={self._settings.deck}: the gold answers of {len(other)} cards, such as "
                f"{other[0]}, are not those of this graph; give the domain, cards.seed and "
                "cards.withhold that the deck was made with"
            )

    def _make_near_misses(self) -> None:
        if self._settings.near_miss.num > 0:
            deck = make_near_misses(self._domain, self._settings.near_miss)
            self._save_deck("near_miss", deck.cards, deck.counts, deck.graph)

    def _save_deck(
        self, name: str, cards: Sequence[Card], counts: Mapping[str, Any], known: Graph
    ) -> None:
        leakage, constraints = audit(cards), self._domain.constraints
        by_pyshacl = 0
        if len(constraints.slow):
            judged = Oracle(known, constraints).judge([card.claim for card in cards])
            by_pyshacl = int(judged.slow.sum())
        about = {
            "domain": self._domain.name,
            "hash": deck_hash(cards),
            "counts": {"total": len(cards), **counts},
            "leakage_audit": leakage,
            "graph": {
                "triples": len(self._domain.graph),
                "digest": self._domain.graph.digest,
                "known": known.digest,
                "violations": {
                    v.constraint: len(v.subjects) for v in self._domain.oracle.violations
                },
                "shared_labels": len(self._domain.graph.shared_labels),
                "judged_by_pyshacl": by_pyshacl,
                "attribution": self._domain.attribution,
            },
        }
        write_cards(self._folder / f"{name}.jsonl", cards)
        write_json(self._folder / f"{name}.json", about)
        if leakage.refused:
            raise ValueError(
                f"{name}.jsonl gives its labels away by wording alone and is refused; see "
                f"leakage_audit in {self._folder / name}.json"
            )

    def _evaluate(self) -> None:
        skipped: dict[str, str] = {}
        settings = self._settings
        cards = self._deck("cards")
        known = self._known("cards", settings.cards)
        with open_model(self._asked()) as model:
            graph = self._degraded(known, settings.kg.keep, settings.kg.wrong)
            self._answer(cards, self._folder, graph, model, skipped)
            if (self._folder / "near_miss.jsonl").exists():
                drawn = CardSettings(
                    seed=settings.near_miss.seed, withhold=settings.near_miss.withhold
                )
                graph = self._degraded(
                    self._known("near_miss", drawn), settings.kg.keep, settings.kg.wrong
                )
                near = self._deck("near_miss")
                self._answer(near, self._folder / "near_miss", graph, model, skipped)
        write_json(self._folder / "skipped.json", skipped)
        write_json(self._folder / "quality.json", self._sweep(cards, known))

    def _asked(self) -> ModelSettings:
        """The model's settings; recorded replies are found where they lie, and fit this deck."""
        asked = self._settings.llm
        if asked.source != "recorded" or asked.replies is None:
            return asked
        path = _there("llm.replies", asked.replies)
        recorded = {row.get("deck") for row in read_jsonl(path)} - {None}
        here = self._json("cards")["hash"]
        if recorded - {here}:
            raise ValueError(
                f"llm.replies: {path.name} answers the deck {min(map(str, recorded))}, this one is "
                f"{here}"
            )
        return asked.model_copy(update={"replies": str(path)})

    def _answer(
        self,
        cards: list[Card],
        folder: Path,
        graph: Graph,
        model: Model | None,
        skipped: dict[str, str],
    ) -> None:
        names = self._settings.system.names
        setting = Setting(
            cards, self._domain, graph, self._settings.system, model, self._settings.seed
        )
        for name in names:
            if model is None and name in NEED_A_MODEL and len(names) > 1:
                skipped[name] = "no language model was chosen; llm=local is the smallest"
                continue
            system = build_system(name, setting)
            self._rows(system, name, cards, folder / "answers" / f"{name}.jsonl", graph)

    def _rows(
        self, system: System, name: str, cards: list[Card], path: Path, graph: Graph
    ) -> dict[str, dict[str, Any]]:
        """Answers of a system, under a digest of everything that they depend on."""
        settings = self._settings
        model = settings.llm.model_dump(
            exclude={"cache", "timeout_s", "attempts", "concurrency", "key_env"}
        )
        decisive = {
            "system": name,
            "settings": settings.system.model_dump(exclude={"names"}),
            "file": _behind(name, settings.system),
            "graph": graph.digest,
            "constraints": [file_digest(find(name)) for name in settings.domain.constraints],
            "domain": settings.domain.model_dump(),
            "model": model if name in NEED_A_MODEL else None,
            "seed": settings.seed,
        }
        return evaluate(system, name, cards, path, run_digest(deck_hash(cards), decisive))

    def _known(self, name: str, deck: CardSettings) -> Graph:
        """What systems may know: the domain's graph, less what a deck withholds to make unknowns.

        Args:
          name: of the deck's files.
          deck: which values are withheld.

        Raises:
          ValueError: the deck was drawn from another graph.
        """
        known = deck_graph(self._domain, deck)
        if self._json(name)["graph"]["known"] != known.digest:
            raise ValueError(
                f"{self._folder / name}.jsonl was drawn from another graph: give the domain, and "
                f"the settings {name}.seed and {name}.withhold, that it was made with"
            )
        return known

    def _degraded(self, known: Graph, keep: float, wrong: float) -> Graph:
        """What is left of a graph; see `KnowledgeSettings`."""
        if keep == 1 and wrong == 0:
            return known
        iris = [predicate.iri for predicate in self._domain.predicates.values()]
        return degrade(known, iris, keep, wrong, self._settings.seed)

    def _sweep(self, cards: list[Card], known: Graph) -> list[dict[str, Any]]:
        """How the licence fares as the graph gets worse, alone and over the model's replies.

        The replies stay those to the facts of the graph as systems know it.
        """
        thesis = load_thesis()
        cards = [card for card in cards if card.requires != "graph"]
        replies = self._folder / "answers" / f"{thesis.unlicensed}.jsonl"
        points = []
        for wrong in self._settings.quality.wrong:
            for keep in self._settings.quality.keep:
                graph = self._degraded(known, keep, wrong)
                oracle = Oracle(graph, self._domain.constraints)
                systems: dict[str, System] = {"graph_rag_licence": Licence(oracle)}
                if replies.exists():
                    systems[thesis.licensed] = Licensed(Replay(replies), oracle)
                scores = {}
                for name, system in systems.items():
                    path = self._folder / "quality" / f"{name}_{keep:g}_{wrong:g}.jsonl"
                    rows = self._rows(system, name, cards, path, graph)
                    scores[name] = assessment.scores(cards, rows, self._settings.seed)
                points.append(
                    {"keep": keep, "wrong": wrong, "triples": len(graph), "systems": scores}
                )
        return points

    def _score(self) -> None:
        cards = self._deck("cards")
        apart = [card for card in cards if card.requires == "graph"]
        near = None
        if (self._folder / "near_miss.jsonl").exists():
            scored = self._scored(self._deck("near_miss"), self._folder / "near_miss")
            near = {"deck": self._json("near_miss"), "systems": scored["systems"]}
        results = {
            "manifest": Manifest.now(self._config, [self._settings.seed]),
            "deck": self._json("cards"),
            **self._scored([card for card in cards if card.requires != "graph"], self._folder),
            "needs_graph": self._scored(apart, self._folder) if apart else None,
            "near_miss": near,
            "quality": self._json("quality"),
            "skipped": self._json("skipped"),
        }
        write_json(self._folder / "results.json", results, schema=assessment.schema())
        plain = assessment.plain_metrics(results["systems"])
        write_json(self._folder / "metrics.json", plain)

    def _scored(self, cards: list[Card], folder: Path) -> dict[str, Any]:
        deck = self._json("near_miss" if folder != self._folder else "cards")["hash"]
        answers = read_answers(folder, self._settings.system.names, deck, cards)
        return assessment.assess(cards, answers, load_thesis(), self._settings.seed)

    def _report(self) -> None:
        verdict = self._json("results")["thesis"]
        page = report.write_page(self._folder)
        self._console.print(
            f"The thesis is [bold]{verdict['verdict']}[/]: {verdict['deciding_condition']}"
        )
        self._console.print(f"The page: {page}", soft_wrap=True)

    def _export(self) -> None:
        name = f"epistemic_{self._domain.name}"
        task = write_lm_eval_task(self._deck("cards"), self._folder / "lm_eval", name)
        self._console.print(f"The task of lm-evaluation-harness: {task}", soft_wrap=True)

    def _validate(self) -> None:
        conforms, text = self._domain.validate()
        path = write_text(self._folder / "validation.txt", text)
        said = "conforms to" if conforms else "[yellow]violates[/]"
        self._console.print(f"The graph {said} its shapes; pySHACL's report: {path}")

    def _deck(self, name: str) -> list[Card]:
        path = self._folder / f"{name}.jsonl"
        if not path.exists():
            raise ValueError(f"{path} does not exist: run stage={name} into that folder first")
        return read_cards(path)

    def _json(self, name: str) -> Any:
        path = self._folder / f"{name}.json"
        if not path.exists():
            raise ValueError(f"{path} does not exist: run the stages before into that folder first")
        return json.loads(path.read_text(encoding="utf-8"))


def _there(setting: str, name: str) -> Path:
    """A file by its path, or by its name among those that ship."""
    try:
        return find(name)
    except ValueError:
        raise ValueError(f"{setting}: {name} does not exist") from None


def _behind(name: str, settings: SystemSettings) -> str | None:
    """Digest of the file that a system is made of: recorded answers, a user's own module."""
    if name == "replay" and settings.replies is not None:
        return file_digest(settings.replies)
    if name == "custom" and settings.target is not None:
        return target_digest(settings.target)
    return None


def read_answers(
    folder: Path, names: Sequence[str], deck: str, cards: Sequence[Card]
) -> dict[str, dict[str, dict[str, Any]]]:
    """Every system's rows by card id, of those named that have answered.

    Args:
      folder: with the folder `answers`. names: of systems. deck: the deck's hash.
      cards: those that must be answered.

    Raises:
      ValueError: no system has answered, or one has answered another deck or not all cards.
    """
    answers = {
        name: read_rows(path)
        for name in names
        if (path := folder / "answers" / f"{name}.jsonl").exists()
    }
    if not answers:
        raise ValueError(f"{folder / 'answers'} holds no answers: run stage=eval first")
    for name, rows in answers.items():
        path = folder / "answers" / f"{name}.jsonl"
        if any(not row["run"].startswith(deck[:16]) for row in rows.values()):
            raise ValueError(f"{path} answers another deck; move it away and run stage=eval again")
        if missing := [card.id for card in cards if card.id not in rows]:
            raise ValueError(
                f"{path} lacks {len(missing)} cards, such as {missing[0]}: run stage=eval again, "
                "which goes on where it stopped"
            )
    return answers


def compare(folders: Sequence[Path], seed: int = 0) -> list[dict[str, Any]]:
    """Every two studies of different domains compared, system by system, if systems were set alike.

    Args:
      folders: output folders of finished studies.
      seed: of the bootstrap.

    Returns:
      [{"one": domain, "other": domain, "folders": their names, "systems": see
      `assessment.compare_decks`}, ...]
    """
    found = []
    for one, other in combinations(folders, 2):
        first, second = load(one), load(other)
        domains = first["deck"]["domain"], second["deck"]["domain"]
        if domains[0] != domains[1] and _answering(first) == _answering(second):
            systems = assessment.compare_decks(_dealt(one, first), _dealt(other, second), seed)
            names = [one.name, other.name]
            found.append(
                {"one": domains[0], "other": domains[1], "folders": names, "systems": systems}
            )
    return found


def _answering(results: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that answers depend on, decks apart."""
    settings = {key: results["manifest"]["configuration"][key] for key in ("system", "llm", "kg")}
    # Recorded replies lie in a file a domain.
    return settings | {"llm": {k: v for k, v in settings["llm"].items() if k != "replies"}}


def _dealt(
    folder: Path, results: Mapping[str, Any]
) -> tuple[list[Card], dict[str, dict[str, dict[str, Any]]]]:
    """The scored cards of a study, and every system's rows."""
    cards = [c for c in read_cards(folder / "cards.jsonl") if c.requires != "graph"]
    deck = results["deck"]["hash"]
    return cards, read_answers(folder, list(results["systems"]), deck, cards)
