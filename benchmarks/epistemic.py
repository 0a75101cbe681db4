"""The rows of the README: every system on both domains, from the recorded replies that ship.

Each domain three times: with every system, the model held to the three words; the model's systems
alone, free to say what they like; and the licence alone, on ten times as many cards, while its
graph gets worse. Writes into benchmarks/results/epistemic/ the results of each, the two domains
compared, the README's tables and the figures of graph quality.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.timing import RESULTS
from epistemic import report, study
from epistemic.systems import NEED_A_MODEL
from evidence import figures, load
from evidence.report import number
from evidence.runs import write_json, write_text

_FOLDER = RESULTS / "epistemic"
_DOMAINS = ("rivers", "countries")
_ARMS = {
    "": ("llm=recorded",),
    "_free": ("llm=recorded_free", f"system.names=[{','.join(NEED_A_MODEL)}]", "quality.keep=[]"),
    "_licence": ("system=graph_rag_licence", "near_miss.num=0"),
}
_KEPT = ("role", "table", "conventions", "beside", "selective", "ideal")
_ROLES = {"reference": "reference, not ranked", "control": "control", "ranked": ""}


def main() -> None:
    """Every arm, from cards to verdicts."""
    with tempfile.TemporaryDirectory() as folder:
        found = {
            (domain, arm): _run(Path(folder) / f"{domain}{arm}", f"domain={domain}", *overrides)
            for domain in _DOMAINS
            for arm, overrides in _ARMS.items()
        }
        compared = study.compare([Path(folder) / domain for domain in _DOMAINS])
    save(found, compared)


def save(found: Mapping[tuple[str, str], dict[str, Any]], compared: list[dict[str, Any]]) -> None:
    """Write what is kept.

    Args:
      found: results by domain and arm.
      compared: see `epistemic.study.compare`.
    """
    for (domain, arm), results in found.items():
        write_json(_FOLDER / f"{domain}{arm}" / "results.json", _kept(results))
    write_json(_FOLDER / "comparison.json", compared)
    tables = [_table(d, found[d, ""], found[d, "_free"]) for d in _DOMAINS]
    print(write_text(_FOLDER / "tables.md", "\n".join(tables)))
    for domain in _DOMAINS:
        drawn = report.quality_figure(found[domain, "_licence"]["quality"])
        assert drawn is not None
        figures.save(drawn, _FOLDER / f"{domain}_licence", "quality")


def _run(folder: Path, *overrides: str) -> dict[str, Any]:
    from hydra import compose, initialize_config_module
    from omegaconf import OmegaConf

    with initialize_config_module("conf.epistemic", version_base="1.3"):
        config = compose("config", overrides=list(overrides))
    plain: Any = OmegaConf.to_container(config, resolve=True)
    study.Study(study.read(plain), folder, plain, Console(quiet=True)).run()
    return load(folder)


def _kept(results: Mapping[str, Any]) -> dict[str, Any]:
    """Results without their breakdowns by kind and predicate, which the page has."""
    systems = {
        name: {key: system[key] for key in _KEPT} for name, system in results["systems"].items()
    }
    return {**results, "systems": systems, "comparisons": [], "needs_graph": None}


def _table(domain: str, held: Mapping[str, Any], free: Mapping[str, Any]) -> str:
    """A domain's rows in Markdown, and both verdicts."""
    heads = list(report.METRICS)
    lines = [
        f"**{domain}**, {held['deck']['counts']['total']} cards",
        "",
        "| system | " + " | ".join(head.replace("_", "-") for head in heads) + " | unreadable |",
        "| --- |" + " ---: |" * (len(heads) + 1),
    ]
    for name, system, said in _rows(held, free):
        cells = [number(system["conventions"]["seed"][head], 2) for head in heads]
        unreadable = number(system["beside"]["invalid_rate"]["value"], 2)
        lines.append(f"| {name}{said} | " + " | ".join([*cells, unreadable]) + " |")
    for results, how in ((held, "three words"), (free, "free")):
        thesis = results["thesis"]
        lines += ["", f"{how}: **{thesis['verdict']}**"]
        lines += [f"- {c['condition']}" for c in thesis["conditions"]]
    return "\n".join([*lines, ""])


def _rows(
    held: Mapping[str, Any], free: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for name, system in held["systems"].items():
        role = _ROLES[system["role"]]
        yield name, system, f" ({role})" if role else ""
        if name in NEED_A_MODEL:
            yield name, free["systems"][name], ", free"


if __name__ == "__main__":
    main()
