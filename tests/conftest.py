"""What tests of several wings share."""

import gc
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# Programs compiled by one worker, or by a command that a test runs, serve the others too.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache/tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
# Most of this suite's time was XLA's work on programs that run for a moment: its optimisation, and
# its newer emitters of fusions, which take three times as long as the older ones. `make test-full`
# sets the variable, to nothing: it tests programs as users have them.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
)

# The longest files, which a worker takes whole, come first, so that none is left for the end; the
# first two forget what is compiled.
_FIRST = (
    "kubku/test_study",
    "goodharts_jax/test_phase",
    "kubku/test_protocol",
    "goodharts_jax/test_learnt",
    "goodharts_jax/test_command",
    "kubku/test_command",
    "goodharts_jax/test_training",
    "goodharts_jax/test_ppo",
    "epistemic/test_command",
    "epistemic/test_report",
    "kubku/test_grownet_learners",
    "kubku/test_tasks",
    "goodharts_jax/test_world",
    "goodharts_jax/test_survival",
    "faults/test_runs",
    "test_package",
)


def pytest_collection_modifyitems(items):
    def place(item):
        found = [i for i, name in enumerate(_FIRST) if name in str(item.path)]
        return found[0] if found else len(_FIRST)

    items.sort(key=place)


def pytest_collection_finish():
    """What is imported stays; tracing makes many objects and little rubbish: look less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)


@pytest.fixture
def on_devices():
    """(code, devices) -> the lines it printed, in a process that sees so many devices."""

    def printed(code, devices):
        flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count={devices}"
        check = f"import jax; assert jax.device_count() == {devices}\n"
        done = subprocess.run(
            [sys.executable, "-c", check + code],
            capture_output=True,
            text=True,
            env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return printed


class Served:
    """A command that one process runs again and again; see tests/served.py."""

    def __init__(self, module, *places):
        code = Path(__file__).parent / "served.py"
        root = str(code.parents[1])
        environment = {k: v for k, v in os.environ.items() if k != "HYDRA_FULL_ERROR"}
        self._process = subprocess.Popen(
            [sys.executable, str(code), module],
            cwd=root,
            env=environment | {"PYTHONPATH": os.pathsep.join([root, *map(str, places)])},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __call__(self, *arguments, folder, check=True):
        """What the command says to arguments when called in a folder."""
        print(json.dumps([str(folder), arguments]), file=self._process.stdin, flush=True)
        code, output, errors = json.loads(self._process.stdout.readline())
        assert not check or code == 0, output + errors
        return subprocess.CompletedProcess(arguments, code, output, errors)

    def end(self):
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="module")
def served():
    """(module, *places to find it in) -> that command, in a process that a file's tests share."""
    running = {}

    def of(module, *places):
        if module not in running:
            running[module] = Served(module, *places)
        return running[module]

    yield of
    for command in running.values():
        command.end()


@pytest.fixture(scope="module")
def browser():
    """A real browser. Skipped where there is none, unless CI says that there must be."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if os.environ.get("CI") == "true":
        from playwright import sync_api

        assert chromium, "CI=true requires Chromium on the path"
    else:
        sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
        if chromium is None:
            pytest.skip("no Chromium on this machine")
    # As root in a container; and no connection of the browser's own.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update"]
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=flags)
        yield browser
        browser.close()


# All rows but the first of a table whose markup, whatever the words in it, is that of a row above.
_HIDE_ALIKE = """
const seen = new Set();
for (const row of document.querySelectorAll('tbody > tr')) {
    const words = />\\s*[^<\\s][^<]*</g;
    const kind = row.closest('table').className + row.outerHTML.replace(words, '>word<');
    if (seen.has(kind) && row.previousElementSibling) {
        row.hidden = true;
        row.dataset.alike = '';
    }
    seen.add(kind);
}"""
_SHOW_ALIKE = """document.querySelectorAll('[data-alike]').forEach(row => {
    row.hidden = false;
    delete row.dataset.alike;
})"""


@pytest.fixture(scope="session")
def accessible():
    """(page) -> None; fails where axe-core finds a fault in it, with all its details open. Of
    rows that are alike but for their words the first is looked at: there are thousands of cells.
    """
    if os.environ.get("CI") == "true":
        from axe_playwright_python import base
    else:
        base = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed")

    def check(page):
        page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
        page.evaluate(base.AXE_SCRIPT)
        page.evaluate(f"() => {{{_HIDE_ALIKE}}}")
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        page.evaluate(_SHOW_ALIKE)
        told = [
            f"{fault['id']} at {node['target']}: {node['failureSummary']}"
            for fault in found
            for node in fault["nodes"][:3]
        ]
        assert told == [], "\n".join(told)

    return check
