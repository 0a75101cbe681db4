"""What tests of several wings share."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Programs compiled by one worker, or by a command that a test runs, serve the others too.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".cache/tests"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

# The longest files, which a worker takes whole, come first, so that none is left for the end.
_LONGEST = (
    "goodharts_jax/test_command",
    "goodharts_jax/test_training",
    "kubku/test_command",
    "kubku/test_protocol",
    "test_package",
    "experiments/test_command",
)


def pytest_collection_modifyitems(items):
    def place(item):
        found = [i for i, name in enumerate(_LONGEST) if name in str(item.path)]
        return found[0] if found else len(_LONGEST)

    items.sort(key=place)


@pytest.fixture
def on_devices():
    """(code, devices) -> the lines it printed, in a process that sees so many devices."""

    def printed(code, devices):
        flags = f"--xla_force_host_platform_device_count={devices}"
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
