"""The commands: settings composed, one study run, what it found shown.

A Ctrl-C while modules are still being imported ends in a line, too.
"""

import os
import sys
from types import TracebackType

_usual = sys.excepthook


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        return _usual(kind, error, trace)
    print("interrupted before anything began", file=sys.stderr, flush=True)
    os._exit(130)


sys.excepthook = _end
