"""What others install: a wheel and an sdist, built, looked into, and used from an empty folder."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[1]
PACKAGES = {"epistemic", "evidence", "goodharts_jax", "goodharts_jax_experiments", "kubku"}
# Where a wheel has the folders of a checkout.
MOVED = {"experiments": "goodharts_jax_experiments", "conf": "goodharts_jax_experiments/conf"}
USER = """\
import evidence
import goodharts_jax as gj
from goodharts_jax.results import Results
results = Results.load("outputs")
reveal_type(results)
reveal_type(evidence.load("outputs").thesis)
reveal_type(gj.make_world)
for place, measured in results.measurements():
    reveal_type(measured.value)
"""

SMALL_GOODHART = ("budget=smoke", "budget.train_steps=16384", "ppo.num_worlds=64")
SMALL_GOODHART += ("ppo.episode_length=64", "network.hidden=[16]")
SMALL_EPISTEMIC = ("domain=rivers", "cards.per_type=4", "near_miss.num=0", "quality.keep=[]")
SMALL_EPISTEMIC += ("system=kg_oracle",)
SMALL_KUBKU = ("budget=smoke", "task=stories", "worlds=[skewed]", "cache=bases")
SMALL_KUBKU += ("learner.names=[dictionary,always_unknown]",)


def run(*command, folder, check=True, **environment):
    """A command in a folder, which sees nothing of the checkout."""
    usual = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HYDRA_FULL_ERROR")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=usual | environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


OTHERS = [version for version in ("3.11", "3.12", "3.13") if not sys.version.startswith(version)]


@pytest.fixture(scope="module", params=OTHERS)
def other_python(request):
    """The interpreter of another version; skipped where this machine has none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{request.param}"), *pyenv.glob(f"{request.param}.*/bin/python")]
    for python in filter(None, found):
        done = run(python, "--version", folder="/", check=False)
        if done.stdout.startswith(f"Python {request.param}."):  # a shim may lead nowhere
            return python
    pytest.skip(f"no Python {request.param} on this machine")


@pytest.fixture(scope="module")
def sources():
    """Every file of the checkout that git knows, by its path."""
    listed = run("git", "ls-files", "-co", "--exclude-standard", folder=ROOT, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [line for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


@pytest.fixture(scope="module")
def built(sources, tmp_path_factory):
    """Folder of an sdist, and of the wheel that was built from it."""
    copy, folder = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("dist")
    for path in sources:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / path, copy / path)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ".", folder=copy)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The folder of commands of an environment with the wheel, the other packages beside it."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", "--without-pip", ".", folder=folder)
    python = folder / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    # Not what .pth files there say: an editable install of the checkout is not to be seen.
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    run(*pip, "--no-deps", "--no-index", "--disable-pip-version-check", wheel, folder=folder)
    return folder / "bin"


def test_a_wheel_takes_no_common_names_and_lacks_nothing(built, sources):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == PACKAGES
    for path in sources:
        top, _, rest = path.partition("/")
        is_module_of_settings = top == "conf" and path.endswith(".py")
        if (top in PACKAGES or top in MOVED) and not is_module_of_settings:
            assert f"{MOVED.get(top, top)}/{rest}" in names, path
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    (points,) = (name for name in names if name.endswith(".dist-info/entry_points.txt"))
    said = zipfile.ZipFile(wheel).read(points).decode()
    assert "[inspect_ai]\nepistemic = epistemic.inspect_task\n" in said


def test_an_sdist_is_complete(built, sources):
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    missing = set(sources) - names
    assert missing == set()
    for folder in ("tests", "docs", "notebooks", "benchmarks/results", "conf"):
        assert any(name.startswith(f"{folder}/") for name in names)


@pytest.mark.parametrize("name", ["goodhart", "epistemic", "kubku", "results"])
def test_every_command_has_help_and_loads_no_jax_for_it(installed, name, tmp_path):
    done = run(installed / name, "--help", folder=tmp_path, PYTHONPROFILEIMPORTTIME="1")
    assert name in done.stdout and "Traceback" not in done.stderr
    assert not re.search(r"\|\s+jax$", done.stderr, re.M)
    assert list(tmp_path.iterdir()) == []


def test_goodhart_from_an_empty_folder(installed, tmp_path):
    small = (*SMALL_GOODHART, "runs=1", "mode=proxy", f"compilation_cache={tmp_path / 'compiled'}")
    done = run(installed / "goodhart", *small, "hydra.run.dir=out", folder=tmp_path)
    assert "out/report.html" in done.stdout
    shown = run(installed / "results", "out", folder=tmp_path).stdout
    assert "proxy" in shown and "out/report.html" in shown
    missing = run(installed / "goodhart", "mode=prxy", folder=tmp_path, check=False)
    assert missing.returncode == 2 and "did you mean proxy?" in missing.stderr
    # The commit of another's checkout, in which an environment may lie, is not this package's.
    run("git", "init", "-q", folder=tmp_path, check=False)
    code = "from evidence.results import commit; print(commit())"
    assert run(installed / "python", "-c", code, folder=tmp_path).stdout == "None\n"


def test_epistemic_from_an_empty_folder(installed, tmp_path):
    small = (*SMALL_EPISTEMIC, f"compilation_cache={tmp_path / 'compiled'}")
    run(installed / "epistemic", *small, "hydra.run.dir=out", folder=tmp_path)
    shown = run(installed / "results", "out", folder=tmp_path).stdout
    assert "kg_oracle" in shown and "out/report.html" in shown


def test_another_python_reads_every_module(other_python, built, tmp_path):
    (wheel,) = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path)
    run(other_python, "-W", "error", "-m", "compileall", "-q", ".", folder=tmp_path)


@pytest.mark.full
def test_every_command_runs_on_another_python(other_python, built, tmp_path):
    """In an environment of its own, with all packages that make installs."""
    run(other_python, "-m", "venv", "--without-pip", "own", folder=tmp_path)
    uv = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "install",
        "--quiet",
        "--python",
        "own/bin/python",
    ]
    done = run(*uv, "-r", ROOT / "requirements.lock", folder=tmp_path, check=False)
    if done.returncode:
        pytest.skip(f"the packages can't be installed here: {done.stderr.strip()[-500:]}")
    run(*uv, "--no-deps", *built.glob("*.whl"), folder=tmp_path)
    commands, compiled = tmp_path / "own/bin", f"compilation_cache={tmp_path / 'compiled'}"
    for name, settings in (
        ("goodhart", (*SMALL_GOODHART, "runs=1", "mode=proxy")),
        ("epistemic", SMALL_EPISTEMIC),
        ("kubku", SMALL_KUBKU),
    ):
        run(commands / name, *settings, compiled, f"hydra.run.dir={name}", folder=tmp_path)
        shown = run(commands / "results", name, folder=tmp_path).stdout
        assert f"{name}/report.html" in shown


BY_NAME = """
import sys, inspect_ai
from inspect_ai.model import ModelOutput, ModelUsage, get_model

def reply(text):
    output = ModelOutput.from_content("mockllm/model", text)
    # Without it the mock counts tokens with a vocabulary that it would download.
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output

model = get_model("mockllm/model", custom_outputs=[reply(text) for text in sys.argv[2:]])
[log] = inspect_ai.eval("epistemic/epistemic", model=model, task_args={"cards": sys.argv[1]},
                        display="none", max_samples=1)
print(log.status, log.results.scores[0].metrics["accuracy"].value)
"""


@pytest.mark.full
def test_inspect_finds_the_task_by_its_name(installed, tmp_path):
    pytest.importorskip("inspect_ai")
    lines = (ROOT / "epistemic/data/deck_rivers.jsonl").read_text().splitlines(keepends=True)[:4]
    (tmp_path / "cards.jsonl").write_text("".join(lines))
    said = [json.loads(line)["gold"] for line in lines]
    said[2] = "I could not say"
    done = run(installed / "python", "-c", BY_NAME, "cards.jsonl", *said, folder=tmp_path)
    assert done.stdout.split()[-2:] == ["success", "0.75"]


def test_a_users_own_module_is_found_where_the_command_is_called(installed, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from evidence.answers import Answer\n"
        "class Mine:\n"
        "    def answer(self, queries):\n"
        "        return (Answer.UNKNOWN for _ in queries)\n"
    )
    small = (*SMALL_EPISTEMIC[:-1], "system=custom", "system.target=mine:Mine")
    small += (f"compilation_cache={tmp_path / 'cc'}",)
    done = run(installed / "epistemic", *small, "hydra.run.dir=out", folder=tmp_path)
    assert "custom" in done.stdout


def test_a_users_five_lines_have_types(installed, tmp_path):
    (tmp_path / "user.py").write_text(USER)
    python = ("--python-executable", installed / "python", "--cache-dir", tmp_path / "cache")
    mypy = (sys.executable, "-m", "mypy", "--strict", *python)
    told = run(*mypy, "user.py", folder=tmp_path).stdout
    for wanted in (
        '5: note: Revealed type is "goodharts_jax.results.Results"',
        '6: note: Revealed type is "evidence.ruling.Ruling | None"',
        '9: note: Revealed type is "float | None"',
        "Success: no issues found",
    ):
        assert wanted in told.replace("builtins.", ""), told
    assert "Any" not in told
