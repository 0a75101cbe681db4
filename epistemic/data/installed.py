"""Graphs that don't ship but that another package holds: where it is installed, and how it is read.

Nothing is downloaded. A domain's settings name the reader, the usual places and the command that
installs the package (conf/epistemic/domain/wordnet.yaml).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

from epistemic.data.wordnet import read_wordnet
from epistemic.logic.graph import LABEL
from epistemic.logic.terms import literal
from evidence.runtime.config import Settings

Triples = Iterator[tuple[str, str, str]]


class InstalledSettings(Settings):
    """What holds a graph.

    Attributes:
      reader: of its files.
      places: folders where they usually are, the first that is there is read; `package:folder` is
        a folder of an installed Python package.
      holds: a file that such a folder holds.
      fix: the command that installs them.
    """

    reader: Literal["wordnet", "tab_separated"]
    places: tuple[str, ...]
    holds: str
    fix: str


def read_installed(settings: InstalledSettings, name: str, path: str | None) -> Triples:
    """The triples of a graph that another package holds.

    Args:
      settings: of that package.
      name: of the domain.
      path: the folder; None: it is looked for in the usual places.

    Raises:
      ValueError: it isn't there, with what to do; or a file that can't be read.
    """
    return READERS[settings.reader](_folder(settings, name, path), name)


def _folder(settings: InstalledSettings, name: str, path: str | None) -> Path:
    places = [path] if path is not None else list(settings.places)
    folders = [folder for place in places for folder in _meant(place)]
    for folder in folders:
        if (folder / settings.holds).is_file():
            return folder
    raise ValueError(
        f"domain={name}: no {settings.holds} in {', '.join(places)}; {settings.fix}, or give the "
        "folder that holds it as domain.path"
    )


def _meant(place: str) -> list[Path]:
    """The folders that a place can mean; none where its package isn't installed."""
    package, mark, inside = place.partition(":")
    if not mark:
        return [Path(place).expanduser()]
    found = importlib.util.find_spec(package)
    return [Path(root) / inside for root in (found and found.submodule_search_locations) or ()]


def read_tab_separated(folder: Path, name: str) -> Triples:
    """The triples of train.txt, valid.txt and test.txt, subject, relation, object a line; and a
    name for each thing, a number: all are equally long, and nothing is known of them.

    Raises:
      ValueError: a line that isn't of three parts; names it.
    """
    base = f"https://example.org/{name}#"
    rows = [row for part in ("train", "valid", "test") for row in _rows(folder / f"{part}.txt")]
    things = sorted({thing for s, _, o in rows for thing in (s, o)})
    for number, thing in enumerate(things, 1):
        yield base + thing, LABEL, literal(f"Thing {number:0{len(str(len(things)))}}")
    for s, p, o in rows:
        yield base + s, base + p, base + o


def _rows(path: Path) -> Iterator[list[str]]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file; the data set has train, valid, test") from None
    for number, line in enumerate(lines, 1):
        parts = line.split("\t")
        if len(parts) != 3:
            raise ValueError(f"{path}, line {number}: {len(parts)} parts, not 3 between tabs")
        yield parts


READERS: dict[str, Callable[[Path, str], Triples]] = {
    "wordnet": lambda folder, _: read_wordnet(folder),
    "tab_separated": read_tab_separated,
}
"""Name -> reader of a folder for the domain of a name."""
