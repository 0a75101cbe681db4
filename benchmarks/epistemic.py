"""The tables of docs/results/epistemic.md: every system on both domains, from replies that ship.

Each domain five times: with every system, the model held to the three words; the model's systems
alone, free to say what they like; the same held to them, of another model; the licence alone, on
ten times as many cards, while its graph gets worse; and the two systems that the thesis compares,
on as many cards as its verdict needs, and on cards that only the graph settles. Writes into
benchmarks/results/epistemic/ the results of each, the two domains compared, these tables as text
and the figures of graph quality.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.timing import RESULTS
from epistemic import figures, study
from epistemic.compared import DomainComparison
from epistemic.comparison import compare
from epistemic.results import Results, Scored, SystemResults
from epistemic.settings import read
from epistemic.systems import NEED_A_MODEL
from evidence import figures as drawing
from evidence.pages import number
from evidence.runtime.files import write_json, write_text

_FOLDER = RESULTS / "epistemic"
# Cards of each label for the thesis. A loss of 0 is told from one of 5 points where cards about one
# subject count as Kish's effective number says and come to 73: z^2 / (n + z^2) < 0.05.
_DOMAINS = {"rivers": 130, "countries": 100}
# What a model is asked that is held to the three words.
_HELD = ("llm", "llm_without_facts", "rag", "graph_rag", "graph_rag_unlicensed")
_ARMS = {
    "": ("llm=recorded",),
    "_free": ("llm=recorded_free", f"system.names=[{','.join(NEED_A_MODEL)}]", "quality.keep=[]"),
    "_gemma": ("llm=recorded_gemma", f"system.names=[{','.join(_HELD)}]", "quality.keep=[]"),
    "_licence": ("system=graph_rag_licence", "near_miss.num=0"),
    # Recorded with llm=local and the same settings of cards.
    "_thesis": (
        "llm=recorded",
        "deck=null",
        "llm.replies=replies_{domain}_thesis.jsonl",
        "cards.per_type={per_type}",
        "cards.needs_graph=20",
        "system=thesis",
    ),
}
_ROLES = {"reference": "reference, not ranked", "control": "control", "ranked": ""}


def main() -> None:
    """Every arm, from cards to verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        found = {
            (domain, arm): _run(
                Path(folder) / f"{domain}{arm}",
                f"domain={domain}",
                *(text.format(domain=domain, per_type=per_type) for text in overrides),
            )
            for domain, per_type in _DOMAINS.items()
            for arm, overrides in _ARMS.items()
        }
        compared = compare([Path(folder) / domain for domain in _DOMAINS])
    save(found, compared)


def save(found: Mapping[tuple[str, str], Results], compared: Sequence[DomainComparison]) -> None:
    """Write what is kept.

    Args:
      found: results by domain and arm.
      compared: see `epistemic.comparison.compare`.
    """
    for (domain, arm), results in found.items():
        write_json(_FOLDER / f"{domain}{arm}" / Results.file, _kept(results))
    write_json(_FOLDER / "comparison.json", compared)
    tables = [_table(d, *(found[d, arm] for arm in ("", "_free", "_thesis"))) for d in _DOMAINS]
    print(write_text(_FOLDER / "tables.md", "\n".join(tables)))
    for domain in _DOMAINS:
        drawn = figures.quality(found[domain, "_licence"].quality)
        assert drawn is not None
        drawing.save(drawn, _FOLDER / f"{domain}_licence", "quality")


def _run(folder: Path, *overrides: str) -> Results:
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("conf.epistemic", version_base="1.3"):
        config = compose("config", overrides=list(overrides))
    plain: Any = OmegaConf.to_container(config, resolve=True)
    return study.run(read(plain), folder, Console(quiet=True))


def _kept(results: Results) -> Results:
    """Results without comparisons and breakdowns by kind and predicate, which the page has."""
    apart = results.needs_graph
    if apart is not None:
        apart = Scored(systems=_brief(apart.systems), thesis=apart.thesis)
    systems = _brief(results.systems)
    whole = results.whole_graph
    if whole is not None:
        whole = whole.model_copy(update={"systems": _brief(whole.systems)})
    changes = {
        "systems": systems, "comparisons": (), "needs_graph": apart, "whole_graph": whole
    }  # fmt: skip
    return results.model_copy(update=changes)


def _brief(systems: Mapping[str, SystemResults]) -> dict[str, SystemResults]:
    left_out: dict[str, Any] = {"by_kind": {}, "by_predicate": {}, "latency_s": None}
    return {name: system.model_copy(update=left_out) for name, system in systems.items()}


def _table(domain: str, held: Results, free: Results, thesis: Results) -> str:
    """A domain's rows in Markdown, and the verdicts."""
    heads = list(figures.METRICS)
    lines = [
        f"**{domain}**, {held.deck.counts.total} cards",
        "",
        "| system | " + " | ".join(head.replace("_", "-") for head in heads) + " | unreadable |",
        "| --- |" + " ---: |" * (len(heads) + 1),
    ]
    for name, system, said in _rows(held, free):
        cells = [number(system.conventions.seed[head], 2) for head in heads]
        unreadable = number(system.beside.invalid_rate.value, 2)
        lines.append(f"| {name}{said} | " + " | ".join([*cells, unreadable]) + " |")
    total = thesis.deck.counts.total
    assert thesis.needs_graph is not None
    for ruling, how in (
        (held.thesis, "three words"),
        (free.thesis, "free"),
        (thesis.thesis, f"three words, {total} cards"),
        (thesis.needs_graph.thesis, "of these, cards that need the graph"),
    ):
        assert ruling is not None
        lines += ["", f"{how}: **{ruling.verdict or 'no verdict'}**"]
        lines += [f"- {c.state}: {c}" for c in ruling.conditions if c.role != "falsifies"]
    return "\n".join([*lines, ""])


def _rows(held: Results, free: Results) -> Iterator[tuple[str, SystemResults, str]]:
    """Every system, those asked without facts by the whole graph; then the free replies'."""
    for name, system in held.systems.items():
        role = _ROLES[system.role]
        yield name, system, f" ({role})" if role else ""
        if name in NEED_A_MODEL:
            yield name, free.systems[name], ", free"
    for results, how in ((held, ""), (free, ", free")):
        blind = results.whole_graph.systems if results.whole_graph is not None else {}
        for name, system in blind.items():
            if name in NEED_A_MODEL:
                yield name, system, f", by the whole graph{how}"


if __name__ == "__main__":
    main()
