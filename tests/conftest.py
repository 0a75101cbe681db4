"""What tests of several wings share."""

import os
import subprocess
import sys

import pytest


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
