"""Errors as people read them: bad input and Ctrl-C in a line, never a trace."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

BAD_INPUT, INTERRUPTED = 2, 130
"""Exit codes."""


class JobFailed(Exception):
    """A job of a sweep ended with the exit code given; why has been said."""


class Known(NamedTuple):
    """What a command knows of its run that errors don't.

    Attributes:
      settings: value by full name. Where an error begins with an argument's name, such as
        `replies: ...`, the setting's full name replaces it.
      given: names of those that the command line gave.
      folder: where files are written, named where an error of the system names no file.
      go_on: what makes the run go on once interrupted, such as "resume=FOLDER", or nothing.
    """

    settings: Mapping[str, object] = {}
    given: frozenset[str] = frozenset()
    folder: Path | None = None
    go_on: Callable[[], str] = str


@contextmanager
def errors_in_a_line(known: Known | None = None, *, traces: bool = False) -> Iterator[None]:
    """Exit with 2 and a line on bad input, with 130 and a line when interrupted.

    Args:
      known: what errors are completed with.
      traces: show where an error was raised instead.
    """
    known = known or Known()
    try:
        yield
    except KeyboardInterrupt:
        # A second Ctrl-C ends the process at once, and without a trace, too.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        way = known.go_on()
        sys.exit(_say(f"interrupted; go on with {way}" if way else "interrupted", INTERRUPTED))
    except BrokenPipeError:
        # Nobody reads on, such as `head`; at its end Python would try once more to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except JobFailed as failed:
        sys.exit(failed.args[0])
    except Exception as error:
        message = None if traces else explained(error, known)
        if message is None:
            raise
        sys.exit(_say(message, BAD_INPUT))


def explained(error: Exception, known: Known) -> str | None:
    """An error as a line for people, or None where it is a fault of ours."""
    if isinstance(error.__cause__, OSError) and str(error).startswith("Unable to configure"):
        error = error.__cause__  # of logging, which names no file
    if isinstance(error, OSError) and error.strerror:
        place, way = error.filename or known.folder, known.go_on()
        told = f"{place}: {error.strerror}" if place else error.strerror
        return f"{told}; that mended, go on with {way}" if way else told
    if isinstance(error, (ValueError, OSError)):
        lines = str(error).splitlines() or [type(error).__name__]
        return "\n".join(with_full_name(line, known.settings) for line in lines)
    memory = isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)
    if memory or isinstance(error, (ArithmeticError, RecursionError)):
        what = "not enough memory" if memory else "a number is out of range"
        told = f" ({str(error).splitlines()[0]})" if str(error) else ""
        return f"{what}{_suspects(known)}{told}"
    return None


def with_full_name(line: str, settings: Mapping[str, object]) -> str:
    """An error that begins with an argument's name, with the setting's full name in its place.

    Where several settings end in that name, it is the one whose value the error tells.
    """
    first = re.match(r"\w+(?=[:=]| is missing)", line)
    if first is None or first[0] in settings:
        return line
    ending = [name for name in settings if name.endswith(f".{first[0]}")]
    if len(ending) > 1:
        ending = [n for n in ending if settings[n] is not None and str(settings[n]) in line]
    return ending[0] + line.removeprefix(first[0]) if len(ending) == 1 else line


def _suspects(known: Known) -> str:
    """The numbers that the command line gave, the three largest."""
    numbers: dict[str, Any] = {
        name: value
        for name in known.given
        if isinstance(value := known.settings.get(name), (int, float))
    }
    largest = sorted(numbers, key=lambda name: -abs(numbers[name]))[:3]
    among = ", ".join(f"{name}={numbers[name]}" for name in largest)
    return f"; look at {among}" if among else ""


def _say(message: str, code: int) -> int:
    # No markup: what stands in brackets, a list of names, say, would be taken for a style.
    console = Console(stderr=True)
    console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    return code
