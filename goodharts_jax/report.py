"""The page of a Goodhart experiment and its table for a terminal, made from the results alone.

`write` reads `results.json` (and `replay.json`, if there is one) in a folder and writes
`report.html`, `report.md` and `figures/` beside them, so that a page can be made again, or made
better, without a run. What the results don't hold, the page leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich import box
from rich.table import Table

from evidence import figures, pages
from evidence.measurement import Measurement
from evidence.runtime import files
from goodharts_jax import learnt_report, thesis
from goodharts_jax.drawing import spoken, style_of
from goodharts_jax.figures import draw, named
from goodharts_jax.results import ModeResults, Modes, Results, Spread, Training

PUBLISHED = {
    "ground_truth": (1.000, 77.2, 1.44, 156.4, 0.0),
    "ground_truth_handhold": (0.999, 49.5, 3.93, 149.7, 0.1),
    "proxy": (0.439, 10.0, 99.60, 60.8, 77.6),
    "ground_truth_blinded": (0.980, 10.0, 99.55, 0.4, 0.0),
}
"""The table of the evaluation protocol that this experiment follows: overall efficiency, mean
survival time (steps), and deaths, food and poison per 1,000 steps, by mode. References to compare
with, never targets."""


@dataclass(frozen=True)
class Column:
    """A column of the table of modes.

    Attributes:
      heading: on the page.
      metric: a field of `Metrics`.
      percent: whether it is printed as a percentage.
      always: whether a short page has it too.
      short: heading in a terminal; "" leaves the column out there.
    """

    heading: str
    metric: str
    percent: bool
    always: bool
    short: str

    def shown(self, quantity: pages.Quantity) -> str:
        """As text."""
        return pages.percent(quantity) if self.percent else pages.number(quantity)


_COLUMNS = (
    Column("Efficiency", "overall_efficiency", True, True, "effi-\nciency"),
    Column("Selectivity", "selectivity", False, False, "selec-\ntivity"),
    Column("Survival (steps)", "survival_restricted_mean", False, True, "survi-\nval"),
    Column("Deaths/1k", "deaths_per_1k_steps", False, True, "deaths\n/1k"),
    Column("by poison", "deaths_by_poison_share", True, False, ""),
    Column("Food/1k", "food_per_1k_steps", False, True, "food\n/1k"),
    Column("Poison/1k", "poison_per_1k_steps", False, True, "poison\n/1k"),
    Column("Energy/1k", "energy_per_1k_steps", False, True, "energy\n/1k"),
    Column("Proxy return/1k", "proxy_return_per_1k_steps", False, False, ""),
)
# What the table of second opinions tells of.
_SECOND = ("overall_efficiency", "deaths_per_1k_steps", "survival_restricted_mean")
_PUBLISHED_METRICS = (
    "overall_efficiency",
    "survival_mean",
    "deaths_per_1k_steps",
    "food_per_1k_steps",
    "poison_per_1k_steps",
)


def write(folder: str | Path, *, full: bool = True) -> Path:
    """Write a results folder's page, its Markdown twin and its figures.

    Args:
      folder: with `results.json` and perhaps `replay.json`; written into.
      full: all that the results hold; else what one looks at first (replay, table, survival,
        consumption, learning).

    Returns:
      The path of `report.html`.

    Raises:
      FileNotFoundError: the folder holds no results.
    """
    folder = Path(folder)
    if not files.is_first_process():
        return folder / "report.html"
    results = Results.load(folder)
    if results.study is not None:
        drawn = draw(results)
        _save_figures(drawn, folder)
        twin = learnt_report.render("proxies.md", results, drawn)
        files.write_text(folder / "report.md", twin)
        inline = {name: figures.svg(figure) for name, figure in drawn.items()}
        page = learnt_report.render("proxies.html", results, inline)
        return files.write_text(folder / "report.html", page)
    recorded = folder / "replay.json"
    replay = json.loads(recorded.read_text("utf-8")) if recorded.exists() else None
    drawn = draw(results, full=full)
    _save_figures(drawn, folder)
    files.write_text(folder / "report.md", to_markdown(results, drawn, full=full))
    return files.write_text(folder / "report.html", to_html(results, drawn, replay, full=full))


def _save_figures(drawn: Mapping[str, Figure], folder: Path) -> None:
    for name, figure in drawn.items():
        figures.save(figure, folder / "figures", name)


def to_html(
    results: Results, drawn: Mapping[str, Figure], replay: Any = None, *, full: bool = True
) -> str:
    """The self-contained page."""
    inline = {name: figures.svg(figure) for name, figure in drawn.items()}
    return _render("report.html", results, full, figures=inline, replay=replay)


def to_markdown(results: Results, drawn: Mapping[str, Figure], *, full: bool = True) -> str:
    """The same content as Markdown, with its figures as files in `figures/`."""
    return _render("report.md", results, full, figures=drawn)


def summary(results: Results) -> Table:
    """The table of modes for a terminal: at most 80 columns for names of up to 22 letters."""
    if results.study is not None:
        return learnt_report.summary(results)
    several = len(results.manifest.seeds) > 1
    table = Table(
        title="Judged by survival",
        caption="means over runs; intervals on the page" if several else "one run a row",
        box=box.SIMPLE,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    table.add_column("mode", max_width=22)
    columns = [column for column in _COLUMNS if column.short]
    for column in columns:
        table.add_column(column.short, justify="right", no_wrap=True)
    for name, mode in results.modes.items():
        cells = [column.shown(_measured(mode, column.metric).value) for column in columns]
        table.add_row(name, *cells, style="dim" if mode.scripted else None)
    return table


# ---- what templates are filled with -------------------------------------------------------------


@dataclass(frozen=True)
class SecondOpinion:
    """A mode's number by the other method too, and where its variation lies.

    Attributes:
      metric: heading of its column.
      percent: whether it is printed as a percentage.
      mode: name.
      chosen: as the table has it.
      other: by the other method.
      spread: None where it wasn't computed.
    """

    metric: str
    percent: bool
    mode: str
    chosen: Measurement
    other: Measurement
    spread: Spread | None


def _render(template: str, results: Results, full: bool, **more: Any) -> str:
    modes, stated = results.modes, thesis.load_thesis()
    trained = named(modes, scripted=False)
    study = results.manifest.configuration.get("study", {})
    unlevel = {name: told for name in trained if (told := _unlevel(modes[name]))}
    return pages.render(
        "goodharts_jax",
        template,
        results=results,
        manifest=results.manifest,
        modes=modes,
        trained=trained,
        scripted=named(modes, scripted=True),
        columns=[column for column in _COLUMNS if full or column.always],
        by_metric={column.metric: column for column in _COLUMNS},
        measured=_measured,
        spoken=spoken,
        tested=list(dict.fromkeys(row.metric for row in results.comparisons)),
        yes_no={True: "yes", False: "no", None: pages.UNDEFINED}.get,
        colours={name: style_of(name)["color"] for name in modes},
        published={
            name: dict(zip(_PUBLISHED_METRICS, row, strict=True))
            for name, row in PUBLISHED.items()
            if name in modes
        },
        second=_second_opinions(modes, trained) if full else [],
        next_study=thesis.next_study(modes, stated),
        by_script=thesis.judge_script(modes, stated) if results.thesis else None,
        unlevel=unlevel,
        level=_level(unlevel) if trained else "",
        trained_for={name: _trained_for(modes[name]) for name in trained},
        phase_study=study if study.get("kind") == "phase_diagram" else None,
        full=full,
        **more,
    )


def _measured(mode: ModeResults, metric: str) -> Measurement:
    return getattr(mode.intervals, metric)


def _second_opinions(modes: Modes, names: Sequence[str]) -> list[SecondOpinion]:
    columns = {column.metric: column for column in _COLUMNS}
    return [
        SecondOpinion(
            metric=columns[metric].heading,
            percent=columns[metric].percent,
            mode=name,
            chosen=_measured(modes[name], metric),
            other=getattr(other, metric),
            spread=modes[name].spread.get(metric),
        )
        for metric in _SECOND
        for name in names
        if len(modes[name].runs) > 1 and (other := modes[name].other_intervals) is not None
    ]


def _trainings(mode: ModeResults) -> list[Training]:
    return [run.training for run in mode.runs if run.training is not None]


def _trained_for(mode: ModeResults) -> str:
    """Training steps of a mode's runs, the fewest and the most: `1.05–1.31 M`."""
    steps = [training.steps for training in _trainings(mode)]
    return "–".join(dict.fromkeys(f"{n / 1e6:.3g}" for n in (min(steps), max(steps)))) + " M"


def _unlevel(mode: ModeResults) -> str:
    """How many runs were not level when their training ended, and after how many steps."""
    steps = [training.steps for training in _trainings(mode) if not training.converged]
    if not steps:
        return ""
    return f"{len(steps)} of {len(mode.runs)} not level after {pages.number(max(steps), 0)} steps"


def _level(unlevel: Mapping[str, str]) -> str:
    """The sentence about all modes."""
    if not unlevel:
        return "Return and value loss of every run had levelled off."
    named = "; ".join(f"{spoken(name)}, {told}" for name, told in unlevel.items())
    return f"† marks a mode with a run whose return or value loss had not levelled off: {named}."
