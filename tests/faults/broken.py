"""The commands, with faults put under them: `python tests/served.py tests.faults.broken` serves it.

Arguments: the command's name, its faults as JSON (`Faults`), then what the command is given. Faults
come from an audit hook, which hears of a file operation before it is made: where one is heard of,
the folder holds what a SIGKILL at that moment would leave.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import importlib
import json
import os
import re
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_EVENTS = {"open": 0, "os.mkdir": 0, "os.rename": 1, "os.remove": 0}
"""Operations that change a folder, and which of their arguments is the path that changes."""


@dataclasses.dataclass
class Faults:
    """What goes wrong in a folder.

    Attributes:
      folder: where; operations elsewhere are left alone.
      keep: moments to keep, by the folder that this one is copied into: a pattern in the path of an
        operation, and the number of it among those that match, from 0.
      at: of the one operation that goes wrong, a pattern in its path; nothing does where empty.
      which: the number of that one among those that match, from 0.
      error: what the system says to it, such as ENOSPC; or a signal, such as SIGKILL.
    """

    folder: str
    keep: dict[str, tuple[str, int]] = dataclasses.field(default_factory=dict)
    at: str = ""
    which: int = 0
    error: str = "ENOSPC"
    heard: int = 0
    matched: int = 0

    def hear(self, path: str) -> None:
        """An operation is about to be made on a path below the folder."""
        self.heard += 1
        for kept, (pattern, number) in list(self.keep.items()):
            if re.search(pattern, path):
                self.keep[kept] = (pattern, number - 1)
                if number == 0:
                    self.copy(Path(kept))
        if self.at and re.search(self.at, path):
            matched, self.matched = self.matched, self.matched + 1
            if matched == self.which or (self.error.startswith("E") and matched > self.which):
                self.break_at(path)

    def copy(self, kept: Path) -> None:
        """Keep the folder as it is."""
        kept.mkdir(parents=True)
        # What is renamed meanwhile is in the copy by one name or by none.
        with contextlib.suppress(shutil.Error, FileNotFoundError):
            shutil.copytree(self.folder, kept, dirs_exist_ok=True)

    def break_at(self, path: str) -> None:
        """The operation goes wrong, and with an error of the system those after it."""
        if self.error.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, self.error))
            return
        number = getattr(errno, self.error)
        raise OSError(number, os.strerror(number), path)


_current: Faults | None = None
_lock = threading.RLock()
_busy = threading.local()


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    faults = _current
    if faults is None or event not in _EVENTS or getattr(_busy, "now", False):
        return
    path = arguments[_EVENTS[event]]
    if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & _WRITES):
        return
    if not isinstance(path, (str, bytes, os.PathLike)):
        return
    text = os.path.abspath(os.fsdecode(path))
    if text != faults.folder and not text.startswith(faults.folder + os.sep):
        return
    with _lock:
        _busy.now = True
        try:
            faults.hear(text)
        finally:
            _busy.now = False


sys.addaudithook(_hook)


def main() -> None:
    """The command, with its faults."""
    global _current
    name, told = sys.argv[1:3]
    sys.argv[1:] = sys.argv[3:]
    # A Ctrl-C before may have changed it, and a process in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    faults = json.loads(told)
    _current = Faults(**faults) if faults else None
    try:
        importlib.import_module(f"experiments.{name}").main()
    finally:
        if _current is not None:
            print(f"operations: {_current.heard}")
        _current = None


if __name__ == "__main__":
    main()
