"""What benchmarks write says what made it."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks import timing

FOLDER = Path(timing.__file__).parent
# They write results of experiments, which have manifests of their own.
OF_EXPERIMENTS = {"completeness", "epistemic"}


def test_what_is_saved_names_commit_date_versions_and_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "RESULTS", tmp_path)
    timing.save("worlds", {"steps": 3}, "a note")
    kept = json.loads((tmp_path / "worlds.json").read_text())
    assert kept["results"] == {"steps": 3} and kept["command"] == "python -m benchmarks worlds"
    assert {"commit", "finished", "versions", "device"} <= set(kept["manifest"])


@pytest.mark.parametrize("file", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda file: file.stem)
def test_every_benchmark_that_writes_writes_a_manifest(file):
    tree = ast.parse(file.read_text("utf-8"))
    called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if {"write_json", "files.write_json"} & called and file.stem not in OF_EXPERIMENTS:
        assert "Manifest.now" in called
