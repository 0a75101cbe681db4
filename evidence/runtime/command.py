"""How a command ends when its user is in the way: bad input and Ctrl-C in a line, never a trace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console


@contextmanager
def errors_in_a_line(go_on: str = "") -> Iterator[None]:
    """Exit with 2 and one line on bad input, with 130 when interrupted.

    Args:
      go_on: the setting that makes an interrupted command go on, such as "resume=FOLDER".
    """
    try:
        yield
    except (ValueError, FileNotFoundError) as error:
        sys.exit(_say(str(error), 2))
    except KeyboardInterrupt:
        sys.exit(_say(f"interrupted; go on with {go_on}" if go_on else "interrupted", 130))


def _say(message: str, code: int) -> int:
    # No markup: what stands in brackets, a list of names, say, would be taken for a style.
    console = Console(stderr=True)
    console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
    return code
