"""How a command begins and ends, shown on a small one: help, bad input, Ctrl-C, folders."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = """\
# A small command. Any setting can be given:
#
#   python -m experiments.small size=3
defaults:
  - _self_
  - colour: red
size: 2 # of the thing
act: none
# Where replies are,
# in JSONL.
replies: null
llm:
  replies: null
  source: none
resume: null # output folder of an interrupted run
hydra:
  run:
    dir: outputs/small/${now:%Y-%m-%d_%H-%M-%S}
  sweep:
    dir: multirun/small/${now:%Y-%m-%d_%H-%M-%S}
    subdir: ${hydra.job.override_dirname}
  job_logging:
    root:
      level: WARNING
"""
SMALL = """\
import sys, time
from pathlib import Path
from evidence.runtime import command, files
from evidence.runtime import config as of_settings
from evidence.runtime.config import Settings, build
from omegaconf import OmegaConf

command.settings_folder = lambda: Path(__file__).parent / "conf"

class Colour(Settings):
    name: str
    shade: float

class All(Settings):
    size: int
    act: str
    replies: str | None
    llm: dict
    resume: str | None
    colour: Colour

def run(config, folder, console):
    settings = build(All, OmegaConf.to_container(config), "")
    acts = {
        "none": lambda: None,
        "keep": lambda: files.write_text(folder / "kept.txt", "x"),
        "keep_and_tell": lambda: acts["keep"]() and print(of_settings.typed.get()),
        "keep_and_fail": lambda: acts["keep"]() and acts["value"](),
        "value": lambda: fail(ValueError("replies: here.jsonl does not exist")),
        "file": lambda: fail(FileNotFoundError("nowhere.jsonl: there is no such file")),
        "full": lambda: fail(OSError(28, "No space left on device", "results.json")),
        "nameless": lambda: fail(OSError(28, "No space left on device")),
        "overflow": lambda: fail(OverflowError("too large to convert")),
        "memory": lambda: fail(MemoryError()),
        "device": lambda: fail(RuntimeError("RESOURCE_EXHAUSTED: out of memory")),
        "fault": lambda: fail(TypeError("a fault of ours")),
        "sleep": lambda: print("asleep", flush=True) or time.sleep(60),
        "keep_and_sleep": lambda: acts["keep"]() and acts["sleep"](),
    }
    acts[settings.act]()
    console.print(f"size {settings.size}")

def fail(error):
    raise error

def main():
    command.main("small", "What it is for.", run, go_on="resume")

if __name__ == "__main__":
    main()
"""


class Small:
    """The command, called in a folder of its own."""

    def __init__(self, code: Path, served, folder: Path):
        self.folder = folder
        self._code, self._served = code, served

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen:
        """In a process of its own."""
        usual = {k: v for k, v in os.environ.items() if k != "HYDRA_FULL_ERROR"}
        return subprocess.Popen(
            [sys.executable, str(self._code / "small.py"), *arguments],
            cwd=self.folder,
            env={**usual, "PYTHONPATH": str(ROOT), **environment},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def alone(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        process = self.start(*arguments, **environment)
        output, errors = process.communicate(timeout=120)
        return process.returncode, output, errors

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """In a process that other calls are made in."""
        ended = self._served(*arguments, folder=self.folder, check=False)
        return ended.returncode, ended.stdout, ended.stderr

    @property
    def said(self) -> str:
        """What launched jobs have said, into files of their launcher."""
        logs = self.folder.rglob("*_log.err")
        return "".join(path.read_text() for path in logs)

    @property
    def left(self) -> list[str]:
        """Everything that calls have left behind."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """The folder of the command's module."""
    folder = tmp_path_factory.mktemp("code")
    settings = folder / "conf" / "small"
    (settings / "colour").mkdir(parents=True)
    (settings / "config.yaml").write_text(CONFIG)
    for name in ("red", "green"):
        text = f"# The colour {name}.\nname: {name}\nshade: 0.5 # from 0 to 1\n"
        (settings / "colour" / f"{name}.yaml").write_text(text)
    (folder / "small.py").write_text(SMALL)
    return folder


@pytest.fixture
def small(code, served, tmp_path):
    return Small(code, served("small", code), tmp_path)


def test_help_shows_purpose_examples_and_every_setting_with_its_comment(small):
    code, shown, errors = small("--help")
    assert (code, errors) == (0, "")
    for text in (
        "What it is for.",
        "experiments.small size=3",
        "colour=red                      green, red",
        "size=2                          of the thing",
        "replies=null                    Where replies are, in JSONL.",
        "colour: The colour red.",
        "colour.shade=0.5                from 0 to 1",
        "llm.source=none",
        "--multirun",
    ):
        assert text in shown
    assert small.left == [] and max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["act=value"], "replies: here.jsonl does not exist"),
        (["act=value", "llm.replies=here.jsonl"], "replies: here.jsonl does not exist"),
        (["act=file"], "nowhere.jsonl: there is no such file"),
        (["act=full"], "results.json: No space left on device"),
        (["act=nameless", "hydra.run.dir=out"], "out: No space left on device"),
        (
            ["act=overflow", "size=99999999999", "colour.shade=1"],
            "a number is out of range; look at size=99999999999, colour.shade=1",
        ),
        (["act=memory", "size=7"], "not enough memory; look at size=7"),
        (["act=device"], "not enough memory (RESOURCE_EXHAUSTED: out of memory)"),
        (["size=big"], "size='big': input should be a valid integer"),
        (["sise=3"], "Could not override 'sise': there is no such setting or group; did you mean"),
        (["colour.shde=3"], "did you mean colour.shade?"),
        (["shade=3"], "did you mean colour.shade?"),
        (["color=red"], "did you mean colour?"),
        (["colour=gren"], "Could not find 'colour/gren'; did you mean green?"),
        (["+colour.shad=1"], "colour.shad: no such setting; did you mean shade? there are name, s"),
        (["size="], "size=''"),
        (["size=[1"], "size=[1: can't be read"),
        (["--config-dir", "nowhere"], "nowhere' not found"),
    ],
)
def test_a_bad_command_ends_in_a_line_and_leaves_no_folder(small, arguments, message):
    code, output, errors = small(*arguments)
    assert code == 2 and message in errors, errors
    assert "Traceback" not in errors and output == "" and errors.count("\n") == 1
    assert small.left == []


def test_an_errors_argument_gets_the_name_of_its_setting(small):
    """Of two settings called `replies` the full name of the top one stands; `source` has one."""
    from evidence.runtime.errors import with_full_name

    settings = {"system.replies": None, "llm.replies": "a.jsonl", "llm.source": "local", "seed": 1}
    for said, wanted in (
        ("replies: a.jsonl does not exist", "llm.replies: a.jsonl does not exist"),
        ("source=local needs xllamacpp", "llm.source=local needs xllamacpp"),
        ("replies is missing", "replies is missing"),  # which of the two?
        ("source is missing: where from", "llm.source is missing: where from"),
        ("seed=-1: too small", "seed=-1: too small"),
        ("llm.source=local needs more", "llm.source=local needs more"),
        ("line 3: not JSON", "line 3: not JSON"),
    ):
        assert with_full_name(said, settings) == wanted


def test_a_fault_of_ours_shows_where_it_is(small):
    code, _, errors = small.alone("act=fault")
    assert code == 1 and "Traceback" in errors and "a fault of ours" in errors
    code, _, errors = small.alone("act=value", HYDRA_FULL_ERROR="1")
    assert code == 1 and "Traceback" in errors


def test_what_a_run_kept_stays(small):
    code, _, errors = small("act=keep_and_fail", "hydra.run.dir=out")
    assert code == 2 and "Traceback" not in errors
    assert "out/kept.txt" in small.left
    # A folder that was there stays, empty or not.
    (small.folder / "mine").mkdir()
    assert small("act=value", "hydra.run.dir=mine")[0] == 2
    assert "mine" in small.left


def test_a_run_that_ends_well_keeps_its_folder_and_resuming_makes_no_other(small):
    code, output, _ = small("act=keep", "hydra.run.dir=out")
    assert (code, output) == (0, "size 2\n")
    before = small.left
    code, _, errors = small("resume=out", "size=3")
    assert code == 0, errors
    assert small.left == before


def test_a_run_knows_what_was_typed_when_it_began(small):
    told = "python -m experiments.small act=keep_and_tell 'replies=a b'\nsize 2\n"
    assert small("act=keep_and_tell", "replies=a b", "hydra.run.dir=out")[1] == told
    assert small("resume=out", "act=keep_and_tell", "size=3")[1] == told.replace("2", "3")
    (small.folder / "out" / ".hydra" / "overrides.yaml").write_text("{")
    now = "python -m experiments.small resume=out act=keep_and_tell\nsize 2\n"
    assert small("resume=out", "act=keep_and_tell")[1] == now


@pytest.mark.processes
@pytest.mark.parametrize("act", ["sleep", "keep_and_sleep"])
def test_ctrl_c_is_a_line_that_says_how_to_go_on(small, act):
    process = small.start(f"act={act}", "hydra.run.dir=out")
    assert process.stdout.readline() == "asleep\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    if act == "sleep":
        assert errors == "interrupted\n" and small.left == []
    else:
        assert errors == f"interrupted; go on with resume={small.folder / 'out'}\n"
        assert "out/kept.txt" in small.left


def interrupted(code):
    """What a process says that interrupts itself, and that Ctrl-C ends in a line."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=15,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    return done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("name", ["goodhart", "kubku", "epistemic", "results"])
def test_ctrl_c_while_modules_are_imported_is_a_line(name, tmp_path):
    """The first import of the command sends it, as early as that."""
    (tmp_path / "rich.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import runpy; "
        f"runpy.run_module('experiments.{name}', run_name='__main__', alter_sys=True)"
    )
    assert "interrupted" in interrupted(code)


def test_a_python_without_the_packages_is_told_where_they_are():
    command = [sys.executable, "-S", "-m", "experiments.goodhart", "mode=proxy"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("omegaconf is not installed here") and ".venv" in done.stderr


@pytest.mark.processes
def test_ctrl_c_is_heard_where_python_ignores_exceptions(tmp_path):
    """JAX has a callback of the garbage collector, which runs at any time."""
    code = (
        "import gc, os, signal, time, experiments\n"
        "gc.callbacks.append(lambda *_: gc.callbacks.clear() or os.kill(os.getpid(), 2))\n"
        "gc.collect()\n"
        "time.sleep(20)\n"
    )
    interrupted(code)


def test_a_sweep_goes_on_past_a_bad_job(small):
    code, output, errors = small(
        "--multirun", "act=value,keep", "size=1,2", "hydra.sweep.dir=sweep"
    )
    assert code == 2 and "Traceback" not in errors
    assert output.count("\nsize") == 2
    assert errors.count("replies: here.jsonl does not exist") == 2
    kept = [path for path in small.left if path.endswith("kept.txt")]
    assert kept == ["sweep/act=keep,size=1/kept.txt", "sweep/act=keep,size=2/kept.txt"]
    assert not any("act=value" in path for path in small.left)


@pytest.mark.processes
@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_jobs_run_side_by_side(small, launcher):
    """In processes of their own, by the plug-ins of the extra `launchers`."""
    pytest.importorskip(f"hydra_plugins.hydra_{launcher.partition('_')[0]}_launcher")
    places = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    sweep = ("--multirun", "act=keep,keep_and_fail", "size=1", "hydra.sweep.dir=sweep")
    code, _, errors = small.alone(*sweep, f"hydra/launcher={launcher}", PYTHONPATH=places)
    assert code != 0 and "replies: here.jsonl does not exist" in errors + small.said, errors
    kept = [path for path in small.left if path.endswith("kept.txt")]
    assert kept == [f"sweep/act={act},size=1/kept.txt" for act in ("keep", "keep_and_fail")]


def test_a_sweep_of_bad_jobs_leaves_nothing(small):
    assert small("--multirun", "act=value", "size=1,2")[0] == 2
    assert small.left == []


@pytest.mark.processes
def test_an_interrupted_sweep_goes_on_in_its_folder(small):
    process = small.start("--multirun", "act=keep_and_sleep", "size=1,2", "hydra.sweep.dir=sweep")
    while process.stdout.readline() != "asleep\n":
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.splitlines()[-1] == "interrupted; go on with hydra.sweep.dir=sweep"


def test_help_shows_the_options_that_are_given():
    from evidence.runtime import manual

    def page(*arguments):
        folder = ROOT / "conf" / "goodhart"
        return manual.manual("goodhart", "Purpose.", folder, "goodhart", arguments)

    assert "remedies.kl" not in page() and "study.members" not in page()
    shown = page("study=remedies", "remedy=[kl,placebo]", "ppo.epochs=3", "world=nowhere")
    assert "remedies.kl" in shown and "study.members" in shown and "world=protocol" in shown


@pytest.mark.parametrize("name", ["goodhart", "kubku", "epistemic"])
def test_every_setting_that_help_shows_has_a_comment(name):
    from evidence.runtime import manual

    folder = ROOT / "conf" / name
    page = manual.manual(name, "Purpose.", folder, name)
    chosen = [
        folder / group / f"{options[0]}.yaml"
        for group, options in manual._choices(folder / "config.yaml")
        if options
    ]
    for file in (folder / "config.yaml", *chosen):
        package = "" if file.name == "config.yaml" else file.parent.name
        silent = [e.name for e in manual.entries(file.read_text("utf-8"), package) if not e.comment]
        assert silent == [], file
    assert all(len(line) <= 80 for line in page.splitlines() if not line.startswith(f"  {name}"))
