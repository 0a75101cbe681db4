"""What the experiments survive: `tests/faults`, with its full part, and what each test tried.

Twenty SIGKILLs of each experiment, disks that are really full, 100,000 garbled files and as many
wrong settings: hours on one core.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from benchmarks import timing

ROOT = Path(__file__).parents[1]
NOTE = (
    "Every fault was put under a run as a user starts it. Survived: it ended in one line that "
    "names the file and the way out, and a rerun in results equal to those of a run that was left "
    "alone; of files and settings, that they were read, or refused in a line."
)


def main(*arguments: str) -> None:
    """Run the tests; keep what was tried, and what of it was survived.

    Args:
      *arguments: to pytest, such as `-m "not full"` for the part that takes minutes.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "tests/faults", f"--junitxml={report}"]
        command += ["-o", "junit_family=xunit1"]
        subprocess.run([*command, *arguments], cwd=ROOT, check=False)
        timing.save("faults", {"arguments": arguments, **outcome(report)}, NOTE)


def outcome(report: Path) -> dict[str, Any]:
    """What pytest's report says: what was survived, and tests that failed or were left out."""
    found: dict[str, Any] = {"survived": [], "failed": {}, "left_out": {}}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("name") or ""
        for end, kind in (("failure", "failed"), ("error", "failed"), ("skipped", "left_out")):
            if (said := case.find(end)) is not None:
                found[kind][name] = (said.get("message") or "").splitlines()[0]
                break
        else:
            tried = [p.get("value") for p in case.iter("property") if p.get("name") == "tried"]
            found["survived"] += tried
    return {"num_survived": len(found["survived"]), **found}
