"""What the experiments survive: `tests/faults`, with its full part, and what each test tried.

Twenty SIGKILLs of each experiment, disks that are really full, 100,000 garbled files and as many
wrong settings: hours on one core. What each test came to is kept as it ends, so that the same
command at the same commit goes on where it was stopped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import timing
from evidence.results import commit
from evidence.runtime import files

ROOT = Path(__file__).parents[1]
NOTE = (
    "Every fault was put under a run as a user starts it. Survived: it ended in one line that "
    "names the file and the way out, and a rerun in results equal to those of a run that was left "
    "alone; of files and settings, that they were read, or refused in a line."
)


ENDED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
"""How pytest ends where all was tried; at last nothing is left to be collected."""


class Kept:
    """For pytest: keeps what each test comes to, and leaves out those of which that is kept.

    Args:
      path: of the records, JSONL.
    """

    def __init__(self, path: Path):
        self._path = path

    def records(self) -> list[dict[str, Any]]:
        """What is kept: a test, how it ended, why, all that it said, and what it tried."""
        return list(files.read_jsonl(self._path)) if self._path.exists() else []

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        done = {record["test"] for record in self.records()}
        items[:] = [item for item in items if item.nodeid not in done]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A call that passed, or any phase that did not."""
        if report.passed and report.when != "call":
            return
        crash = getattr(report.longrepr, "reprcrash", None)
        record = {
            "test": report.nodeid,
            "outcome": report.outcome,
            "seconds": report.duration,
            "why": crash.message if crash else _why(report),
            "said": report.longreprtext,
            "tried": [value for name, value in report.user_properties if name == "tried"],
        }
        files.append_jsonl(self._path, record)


def _why(report: pytest.TestReport) -> str:
    """Of a skip the reason alone, not the file where this machine has it."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext


def main(*arguments: str) -> None:
    """Run the tests; keep what was tried, and what of it was survived.

    Args:
      *arguments: to pytest, such as `-m "not full"` for the part that takes minutes.
    """
    os.environ.setdefault("XLA_FLAGS", "")  # programs as users have them, not as tests do
    made_by = commit()
    path = ROOT / ".cache" / "faults" / f"{made_by}_{'_'.join(arguments).replace('/', '.')}.jsonl"
    if made_by is None or made_by.endswith("+"):
        path.unlink(missing_ok=True)  # not the code of a commit: another's records say nothing
    kept = Kept(path)
    ended = pytest.main([str(ROOT / "tests/faults"), "-p", "no:xdist", *arguments], plugins=[kept])
    if ended == pytest.ExitCode.INTERRUPTED:
        sys.exit(f"interrupted; at a commit the same command goes on; {path} holds what has ended")
    if ended not in ENDED or not (records := kept.records()):
        sys.exit(f"nothing is kept: pytest ended with {ended!r}")
    timing.save("faults", {"arguments": arguments, **outcome(records)}, NOTE)


def outcome(records: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What was survived, and tests that failed or were left out, with the first line of why."""
    found: dict[str, Any] = {"survived": [], "failed": {}, "left_out": {}}
    records = list(records)
    failed = {record["test"] for record in records if record["outcome"] == "failed"}
    # A test that passed and then failed to end has failed.
    for record in (r for r in records if r["outcome"] == "failed" or r["test"] not in failed):
        name = record["test"].rpartition("::")[2]
        if record["outcome"] == "passed":
            found["survived"] += record["tried"]
        else:
            why = record["why"].strip().splitlines() or [""]
            found["failed" if record["outcome"] == "failed" else "left_out"][name] = why[0]
    return {"num_survived": len(found["survived"]), **found}
