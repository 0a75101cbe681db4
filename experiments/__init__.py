"""The commands: settings composed, one study run, what it found shown.

A Ctrl-C ends in a line even while modules are still being imported, and is heard even where Python
only reports what is raised. So does a Python that lacks what is to be imported.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib.util import find_spec
from types import TracebackType

_usual, _usually_ignored = sys.excepthook, sys.unraisablehook


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, ModuleNotFoundError) and find_spec("hydra") is None:
        print(
            f"{error.name} is not installed here; in a checkout make puts it into .venv, with all "
            "the rest: source .venv/bin/activate",
            file=sys.stderr,
            flush=True,
        )
        os._exit(2)
    if not issubclass(kind, KeyboardInterrupt):
        return _usual(kind, error, trace)
    print("interrupted before anything began", file=sys.stderr, flush=True)
    os._exit(130)


def _hear(ignored: sys.UnraisableHookArgs) -> None:
    if not issubclass(ignored.exc_type, KeyboardInterrupt):
        return _usually_ignored(ignored)
    # In a destructor or a callback of the garbage collector, JAX's, say, it would come to nothing.
    again = (threading.main_thread().ident, signal.SIGINT)
    threading.Timer(0.02, signal.pthread_kill, again).start()


sys.excepthook, sys.unraisablehook = _end, _hear
