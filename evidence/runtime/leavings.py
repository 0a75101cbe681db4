"""No folder is left behind by a command that came to nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from evidence.runtime.files import is_first_process

BEGINNINGS = frozenset({".hydra", "config.yaml", "settings.json"})
"""What a run writes before it has anything worth keeping."""


class Leavings:
    """The output folders that a command makes, of which those without content are removed.

    Args:
      name: of the command: by default it writes below `outputs/NAME` and `multirun/NAME`.
      arguments: of the command line, where other folders may stand.
    """

    def __init__(self, name: str, arguments: Iterable[str]) -> None:
        made = [
            Path(value.strip("'\""))
            for setting, _, value in (argument.partition("=") for argument in arguments)
            if setting in ("hydra.run.dir", "hydra.sweep.dir")
        ]
        # The last part has the time in it and can't be there yet.
        usual = [Path(kind) / name / "-" for kind in ("outputs", "multirun")]
        every = [f.absolute() for path in made or usual for f in (path, *path.parents)]
        self._absent = {folder for folder in every if not folder.exists()}
        self._unborn = () if made else tuple(path.parent.absolute() for path in usual)

    def drop(self, folder: Path, but_for: Iterable[str] = (".hydra",)) -> None:
        """Remove a folder that this command made, where it holds nothing, and what was made above.

        Args:
          folder: of one run, or of a sweep.
          but_for: names of files and folders that count as nothing; empty folders and logs do, too.
        """
        if not (is_first_process() and self._made(folder) and is_nothing(folder, but_for)):
            return
        shutil.rmtree(folder, ignore_errors=True)
        for above in folder.parents:
            if above in self._absent and above.is_dir() and not any(above.iterdir()):
                above.rmdir()

    def _made(self, folder: Path) -> bool:
        """Whether it wasn't there before."""
        lineage = (folder, *folder.parents)
        return any(f in self._absent or f.parent in self._unborn for f in lineage)


def is_nothing(folder: Path, but_for: Iterable[str]) -> bool:
    """Whether a folder is there and holds no more than the named, logs and empty folders."""
    named = set(but_for)
    return folder.is_dir() and all(
        entry.name in named
        or entry.suffix == ".log"
        or (entry.is_dir() and not any(path.is_file() for path in entry.rglob("*")))
        for entry in folder.iterdir()
    )
