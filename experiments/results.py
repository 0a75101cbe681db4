"""Look again at what experiments left behind, without running anything.

    results FOLDER            the table, the verdict, and the page drawn again
    results FOLDER FOLDER     settings and measurements that differ, side by side
    results SWEEP             every job of a multirun; runs of Goodhart are joined
    results --all ...         every measurement

(From a checkout: python -m experiments.results.)
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from rich.console import Console, RenderableType
from rich.table import Table

import evidence
from evidence import Measurement, Results
from evidence.pages import UNDEFINED, counted, number
from evidence.runtime import sweeps
from evidence.runtime.errors import errors_in_a_line
from evidence.runtime.hints import leaves

from .shown import show, show_verdict

_WIDTH, _LINES = 80, 24
# By the package that a `Results` is defined in: where its page and its table are made.
_REPORTS = {
    "epistemic": "epistemic.report",
    "goodharts_jax": "goodharts_jax.report",
    "kubku": "kubku.report",
}
# And where those of a sweep are joined into one, as far as they can be.
_JOINED = {"goodharts_jax": "goodharts_jax.assessment"}
# Told on the page; a terminal's table has no room for them.
_SECOND_OPINIONS = {"other_intervals", "spread"}


def main(arguments: list[str] | None = None) -> None:
    """The command `results`."""
    with errors_in_a_line():
        _answer(_parsed(arguments))


def _parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="+", type=Path, help="output folder of a run or multirun")
    parser.add_argument("--all", action="store_true", help="every measurement, however many")
    return parser.parse_args(arguments)


def _answer(asked: argparse.Namespace) -> None:
    console, folders = Console(), asked.folder
    if not asked.all:
        console.width = min(_WIDTH, console.width)
    below = sweeps.jobs(folders[0])
    if len(folders) > 1:
        parts = {str(folder): evidence.load(folder) for folder in folders}
        _compare(parts, console, every=asked.all)
    elif (folders[0] / Results.file).exists() and not below.done:
        _show(folders[0], console, every=asked.all)
    else:
        _show_sweep(folders[0], below, console, every=asked.all)


def wing_of(results: Results) -> str:
    """The package that defines results of this type."""
    return type(results).__module__.partition(".")[0]


# ---- one folder ---------------------------------------------------------------------------------


def _show(folder: Path, console: Console, *, every: bool) -> None:
    """The numbers of one folder, and its page again."""
    results = evidence.load(folder)
    report = import_module(_REPORTS[wing_of(results)])
    if every:
        rows = {
            place: (number(measured), f"{measured.method}, {measured.n} × {measured.unit}")
            for place, measured in measurements(results)
        }
        summary = _table(rows, "measured", "interval from")
    else:
        summary = report.summary(results)
    page = report.write(folder)
    if every:
        show(results, summary, page, console)
    else:
        _print_some(summary, console, _LINES)
        show(results, None, page, console)


def measurements(results: Results) -> Iterator[tuple[str, Measurement]]:
    """Every named Measurement of an experiment with its place, without second opinions."""
    for place, measured in results.measurements():
        parts = place.split(".")
        if not _SECOND_OPINIONS & set(parts) and parts[0] != "thesis":
            # The level that merely says that intervals follow tells a reader nothing.
            yield ".".join(part for part in parts if part != "intervals"), measured


def _table(rows: Mapping[str, tuple[str, ...]], *headings: str) -> Table:
    """Rows by their place in the results, those of one thing under its name."""
    table = Table("", *headings)
    above = ""
    for place, cells in rows.items():
        thing, _, name = place.rpartition(".")
        if thing != above:
            table.add_section()
            table.add_row(f"[bold]{thing}[/]")
            above = thing
        table.add_row(f"  {name}", *cells)
    return table


def _print_some(shown: RenderableType, console: Console, lines: int) -> None:
    """As many lines as fit beside the rest of a screen, and how many were left out."""
    with console.capture() as capture:
        console.print(shown)
    printed = capture.get().splitlines()
    console.file.write("\n".join(printed[:lines]) + "\n")
    if len(printed) > lines:
        console.print(f"... {len(printed) - lines} more lines with --all", style="dim")


# ---- several ------------------------------------------------------------------------------------


def _compare(parts: Mapping[str, Results], console: Console, *, every: bool) -> None:
    """Settings that differ, the verdicts, then measurements, a column a folder."""
    names = _short([*parts])
    settings = [dict(leaves(part.manifest.configuration)) for part in parts.values()]
    table = Table("setting", *names, title="Settings that differ")
    for place in dict.fromkeys(place for part in settings for place in part):
        values = [str(part.get(place, UNDEFINED)) for part in settings]
        if len(set(values)) > 1:
            table.add_row(place, *values)
    if table.row_count:
        _print_some(table, console, 10_000 if every else 12)
    else:
        console.print("The settings are the same.")
    for name, part in zip(names, parts.values(), strict=True):
        if part.thesis is not None:
            console.print(f"{name}: ", style="bold", end="")
            show_verdict(part, console)
    found = [dict(measurements(part)) for part in parts.values()]
    places = list(dict.fromkeys(place for part in found for place in part))
    shown = places if every else [place for place in places if _apart(found, place)]
    if not every:
        console.print(
            f"Of {len(places)} measurements {len(shown)} differ: their intervals lie apart, or one "
            "is missing. --all shows every one."
        )
    rows = {place: tuple(number(part.get(place)) for part in found) for place in shown}
    if rows:
        _print_some(_table(rows, *names), console, 10_000 if every else 18)


def _apart(found: list[dict[str, Measurement]], place: str) -> bool:
    """Whether a measurement is missing somewhere, or two intervals of it don't overlap."""
    here = [part[place] for part in found if place in part]
    lows, highs = zip(*(_ends(measured) for measured in here), strict=True)
    return len(here) < len(found) or max(lows) > min(highs)


def _ends(measured: Measurement) -> tuple[float, float]:
    value = measured.value if measured.value is not None else 0.0
    if measured.low is None and measured.high is None:
        return value, value
    low, high = measured.low, measured.high
    return -float("inf") if low is None else low, float("inf") if high is None else high


def _short(names: list[str]) -> list[str]:
    """Folders' own names, where these tell them apart."""
    own = [Path(name).name for name in names]
    return own if len(set(own)) == len(own) else names


def _wing_below(below: sweeps.Jobs) -> str:
    """The command that a multirun's jobs are of; `NAME` where none is done."""
    wings = {wing_of(evidence.load(job)) for job in below.done.values()}
    (wing,) = wings if len(wings) == 1 else ("NAME",)
    return wing.removesuffix("s_jax")


def _show_sweep(folder: Path, below: sweeps.Jobs, console: Console, *, every: bool) -> None:
    """All jobs of a multirun, joined where they can be."""
    for state, names in (("failed or unfinished", below.failed), ("missing", below.missing)):
        for name in names:
            console.print(f"{state}: {name}", style="yellow", markup=False, soft_wrap=True)
    if below.again:
        console.print("Run these alone, then this command again:")
    for *settings, place in below.again:
        command = shlex.join(["python", "-m", f"experiments.{_wing_below(below)}", *settings])
        console.print(f'  {command} "{place}"', markup=False, highlight=False, soft_wrap=True)
    if not below.done:
        raise FileNotFoundError(f"{folder}: there is no {Results.file} in it or below it")
    parts = {name: evidence.load(job) for name, job in below.done.items()}
    if len(parts) == 1 and not below.again:
        (job,) = below.done.values()
        return _show(job, console, every=every)
    (first, *others) = {wing_of(part) for part in parts.values()}
    if not others and first in _JOINED:
        try:
            joined: Results = import_module(_JOINED[first]).join(parts)
        except ValueError as error:
            console.print(f"Not joined: {error}", markup=False)
        else:
            joined.save(folder)
            console.print(f"{len(parts)} jobs joined into {folder / Results.file}", soft_wrap=True)
            return _show(folder, console, every=every)
    if every or len(parts) == 2:
        return _compare(parts, console, every=every)
    table = Table("job", "verdict", title=counted(len(parts), "job"))
    for name, part in parts.items():
        table.add_row(name, str(part.thesis.verdict or "none given") if part.thesis else UNDEFINED)
    _print_some(table, console, _LINES)
    console.print("Two folders given show what differs between them; --all all measurements.")


if __name__ == "__main__":
    main()
