"""The command that looks again: one folder, two, a sweep; a screen by default."""

import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from rich.table import Table

import evidence
from evidence import Condition, Measurement, Results, rule
from evidence.record import Record
from evidence.results import Manifest
from evidence.runtime import sweeps
from experiments import results as command

ROOT = Path(__file__).parents[2]
KEPT = sorted(path.parent for path in (ROOT / "benchmarks" / "results").glob("**/results.json"))
# One of each kind; the others are many seconds of drawing.
QUICK = {"goodhart", "phase_diagram", "rivers", "kubku_ten"}


class Part(Record):
    """A part of results."""

    speed: Measurement
    """Steps a second."""
    length: Measurement
    """Steps."""


class Invented(Results):
    """Results of a made-up experiment."""

    invented: dict[str, Part]
    """By name."""


@pytest.fixture(autouse=True)
def wing(monkeypatch):
    """A made-up wing: `invented.results`, `invented.report` and `invented.assessment`."""
    Invented.__module__ = "invented.results"
    results = types.ModuleType("invented.results")
    results.Results = Invented
    report = types.ModuleType("invented.report")

    def write(folder):
        (folder / "report.html").write_text("page")
        return folder / "report.html"

    def summary(found):
        table = Table("part", "speed")
        for name, part in found.invented.items():
            table.add_row(name, str(part.speed))
        return table

    def join(parts):
        if len({part.manifest.configuration["size"] for part in parts.values()}) > 1:
            raise ValueError("not made under the same conditions: size")
        first = next(iter(parts.values()))
        every = {k: v for part in parts.values() for k, v in part.invented.items()}
        return first.model_copy(update={"invented": every})

    report.write, report.summary = write, summary
    assessment = types.ModuleType("invented.assessment")
    assessment.join = join
    for module in (results, report, assessment):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(evidence.results._KINDS, "invented", "invented.results")
    monkeypatch.setitem(command._REPORTS, "invented", "invented.report")
    monkeypatch.setitem(command._JOINED, "invented", "invented.assessment")


def written(folder, *names, size=1, speed=2.0, thesis=True):
    measured = Measurement(speed, speed - 0.5, speed + 0.5, 3, "run", "t 95%")
    length = Measurement(10.0, 9.0, 11.0, 3, "run", "t 95%")
    condition = Condition(
        name="speed", role="supports", wanted="above 1", state="met", measured={"speed": measured}
    )
    found = Invented(
        manifest=Manifest.now({"size": size}, [0]),
        thesis=rule("It is fast.", [condition]) if thesis else None,
        warnings=tuple(f"warning {n}" for n in range(6)),
        invented={name: Part(speed=measured, length=length) for name in names or ("one",)},
    )
    found.save(folder)
    return str(folder)


def job(folder, *overrides):
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text("".join(f"- {o}\n" for o in overrides))
    return folder


def shown(capsys, *arguments):
    command.main([str(argument) for argument in arguments])
    output = capsys.readouterr().out
    if "--all" not in arguments:
        lines = output.splitlines()
        # Paths and commands are for copying.
        whole = ("results.json", "Page: ", "python -m")
        folded = [line for line in lines if not any(part in line for part in whole)]
        assert len(lines) <= 40 and max(map(len, folded)) <= 80, output
    return output


# ---- one folder ---------------------------------------------------------------------------------


def test_one_folder_is_shown_and_its_page_drawn_again(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "out")
    output = shown(capsys, "out")
    assert "2 [1.5, 2.5]" in output and "Page: out/report.html" in output
    assert "Supported: all conditions are met; speed above 1: 2 [1.5, 2.5]" in output
    assert "warning 3" in output and "warning 4" not in output and "2 more notes" in output
    assert (tmp_path / "out" / "report.html").read_text() == "page"


def test_a_long_table_is_cut_and_all_shows_every_measurement(tmp_path, capsys):
    folder = written(tmp_path, *(f"part{n}" for n in range(100)))
    output = shown(capsys, folder)
    assert "more lines with --all" in output and "part99" not in output
    output = shown(capsys, folder, "--all")
    assert "part99" in output and "length" in output and "3 × run" in output


def test_a_folder_without_results_is_one_clear_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path)])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "there is no results.json in it or below it" in captured.err


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(folder, marks=() if folder.name in QUICK else pytest.mark.full)
        for folder in KEPT
    ],
    ids=lambda folder: str(folder.relative_to(ROOT / "benchmarks" / "results")),
)
def test_every_kept_folder_fits_a_screen_and_leaves_git_clean(folder, tmp_path, capsys):
    copy = tmp_path / folder.name
    shutil.copytree(folder, copy)
    before = {path.relative_to(copy) for path in copy.rglob("*")}
    output = shown(capsys, copy)
    assert "Page:" in output and "report.html" in output
    made = {path.relative_to(copy) for path in copy.rglob("*") if path.is_file()} - before
    assert made
    names = [str(folder.relative_to(ROOT) / path) for path in made]
    done = subprocess.run(
        ["git", "check-ignore", *names], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode == 128:
        pytest.skip("not a git checkout")
    assert set(done.stdout.splitlines()) == set(names)


# ---- several ------------------------------------------------------------------------------------


def test_two_folders_show_what_differs(tmp_path, capsys):
    one = written(tmp_path / "small", "one", "two", size=1)
    other = written(tmp_path / "large", "one", size=5, speed=7.0)
    output = shown(capsys, one, other)
    (line,) = [line for line in output.splitlines() if "│ size" in line]
    assert [part.strip() for part in line.split("│")[1:4]] == ["size", "1", "5"]
    assert "small: Supported" in output and "large: Supported" in output
    # Of four, those of `two` are missing in one folder, and one speed lies elsewhere.
    assert "Of 4 measurements 3 differ" in output
    assert "7 [6.5, 7.5]" in output.replace("7.00 [6.50, 7.50]", "7 [6.5, 7.5]")
    assert output.count("length") == 1
    assert shown(capsys, one, other, "--all").count("length") == 2


def test_a_sweep_names_what_failed_and_what_is_missing(tmp_path, capsys):
    (tmp_path / "multirun.yaml").write_text(
        "hydra:\n  overrides:\n    task:\n    - mode=red,green\n    - seed=1,2\n"
    )
    for mode, seed in (("red", 1), ("red", 2), ("green", 1)):
        job(tmp_path / f"mode={mode},seed={seed}", f"mode={mode}", f"seed={seed}")
    written(tmp_path / "mode=red,seed=1", "one")
    written(tmp_path / "mode=red,seed=2", "two")
    below = sweeps.jobs(tmp_path)
    assert below.missing == ["mode=green seed=2"]
    assert below.again == [
        ["mode=green", "seed=1", f"hydra.run.dir='{tmp_path}/mode=green,seed=1'"],
        ["mode=green", "seed=2", f"hydra.run.dir='{tmp_path}/mode=green,seed=2'"],
    ]
    output = shown(capsys, tmp_path)
    assert "failed or unfinished: mode=green,seed=1\n" in output
    assert "missing: mode=green seed=2\n" in output
    assert output.count(" mode=green seed=") >= 2 and "Run these alone, then this" in output
    assert "2 jobs joined into" in output
    assert set(evidence.load(tmp_path).invented) == {"one", "two"}
    # The joined result is no job.
    assert "2 jobs joined into" in shown(capsys, tmp_path)


def test_jobs_that_cannot_be_joined_stand_in_a_table(tmp_path, capsys):
    for size in (1, 2, 3):
        written(tmp_path / f"size={size}", size=size, thesis=size < 3)
    output = shown(capsys, tmp_path)
    assert "Not joined: not made under the same conditions: size" in output
    assert "3 jobs" in output and output.count("supported") == 2
    assert not (tmp_path / "results.json").exists()
