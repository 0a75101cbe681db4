"""Look again at what experiments left behind, without running anything.

python -m experiments.results FOLDER            the table; the page and its figures drawn again
python -m experiments.results FOLDER FOLDER     settings and results that differ, side by side
python -m experiments.results SWEEP             every job of a multirun, side by side; the runs of
                                                a Goodhart sweep also joined into one result
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import evidence
from evidence.measurement import Measurement
from evidence.pages import UNDEFINED, number
from evidence.results import Results
from evidence.runtime.command import errors_in_a_line

# By the part of its results that only this wing writes: the function that draws a folder's page.
_PAGES = {
    "modes": ("goodharts_jax.report", "write"),
    "families": ("kubku.report", "write"),
    "systems": ("epistemic.report", "write_page"),
}


# Told on the page; a terminal's table has no room for them.
_SECOND_OPINIONS = ("other_intervals", "spread")


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", nargs="+", type=Path, help="output folder of a run or multirun")
    folders = parser.parse_args(arguments).folder
    with errors_in_a_line():
        _look(folders, Console())


def _look(folders: list[Path], console: Console) -> None:
    if len(folders) > 1:
        _compare({str(folder): evidence.load(folder) for folder in folders}, console)
    elif (folders[0] / "results.json").exists() and not _jobs(folders[0]):
        _show(folders[0], console)
    else:
        _gather(folders[0], console)


def _show(folder: Path, console: Console) -> None:
    """One folder: its numbers, and its page again."""
    results = evidence.load(folder)
    rows = {
        place: (number(measured), f"{measured.method}, {measured.n} × {measured.unit}")
        for place, measured in measurements(results)
    }
    console.print(_table(rows, "measured", "interval from"))
    if results.thesis is not None:
        console.print(str(results.thesis), markup=False, highlight=False)
    console.print(f"The page: {_page(results)(folder)}", soft_wrap=True)


def _compare(parts: Mapping[str, Results], console: Console) -> None:
    """Settings that differ, then every measurement, a column a folder."""
    names = [Path(name).name for name in parts]
    settings = [dict(_leaves(part.manifest.configuration)) for part in parts.values()]
    table = Table("setting", *names, title="Settings that differ")
    for place in dict.fromkeys(place for part in settings for place in part):
        values = [str(part.get(place, UNDEFINED)) for part in settings]
        if len(set(values)) > 1:
            table.add_row(place, *values)
    if table.row_count:
        console.print(table)
    else:
        console.print("The settings are the same.")
    found = [dict(measurements(part)) for part in parts.values()]
    places = dict.fromkeys(place for part in found for place in part)
    rows = {place: tuple(number(part.get(place)) for part in found) for place in places}
    console.print(_table(rows, *names))


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


def _gather(folder: Path, console: Console) -> None:
    """All jobs of a multirun side by side, and Goodhart's runs joined."""
    jobs = _jobs(folder)
    if not jobs:
        raise FileNotFoundError(f"{folder}: there is no results.json in it or below it")
    parts = {str(job.relative_to(folder)): evidence.load(job) for job in jobs}
    if all("modes" in type(part).model_fields for part in parts.values()):
        from goodharts_jax.assessment import join

        join(parts).save(folder)  # type: ignore[arg-type]
        console.print(f"{len(parts)} jobs joined into {folder / 'results.json'}", soft_wrap=True)
        _show(folder, console)
    else:
        _compare(parts, console)


def _jobs(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.glob("*/**/results.json"))


def _page(results: Results) -> Callable[[Path], Path]:
    for part, (module, function) in _PAGES.items():
        if part in type(results).model_fields:
            return getattr(import_module(module), function)
    raise ValueError(f"no experiment writes {type(results).__name__}")


def measurements(results: Results) -> Iterator[tuple[str, Measurement]]:
    """Every named Measurement of an experiment with its place, without second opinions."""
    for place, measured in results.measurements():
        parts = place.split(".")
        if not set(_SECOND_OPINIONS) & set(parts):
            # The level that merely says that intervals follow tells a reader nothing.
            yield ".".join(part for part in parts if part != "intervals"), measured


def _leaves(node: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, entry in node.items():
        if isinstance(entry, Mapping):
            yield from _leaves(entry, f"{place}{name}.")
        else:
            yield f"{place}{name}", entry


if __name__ == "__main__":
    main()
