"""One program over many runs on whatever devices there are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

_AXIS = "runs"


def prepare(compilation_cache: bool | str = True) -> None:
    """Set JAX up for an experiment; call before JAX is first used.

    One CPU device a core, since one small run can't fill two cores and two runs can; and compiled
    programs kept on disk, so that a second run starts at once.

    Args:
      compilation_cache: True for the user's cache folder, a path, or False for none.
    """
    jax.config.update("jax_num_cpu_devices", os.cpu_count())
    if compilation_cache is False:
        return
    default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "goodharts-jax"
    folder = default if compilation_cache is True else Path(compilation_cache)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.3)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def over_runs(function: Callable[..., Any], *, donate: tuple[int, ...] = ()) -> Callable[..., Any]:
    """Lift a function of one run to a whole population, spread over all local devices.

    Args:
      function: `(shared, *run) -> result`, pure; all are pytrees, `run` and `result` of one run.
      donate: positions of arguments whose memory may be used for the results.

    Returns:
      `(shared, *runs) -> results`, jitted, where every leaf of `runs` and `results` has a leading
      axis of runs. On an accelerator a device's runs are vmapped; on a CPU they go one after
      another, for caches hold one run and not ten (benchmarks/population.py compares). Runs that
      don't divide among the devices are padded by the last and dropped again.
    """
    compiled: dict[Mesh, Any] = {}

    def build(mesh: Mesh, arity: int) -> Any:
        def local(shared: Any, *runs: Any) -> Any:
            def one(run: Any) -> Any:
                return function(shared, *run)

            return jax.vmap(one)(runs) if _is_accelerator() else jax.lax.map(one, runs)

        spread = jax.shard_map(
            local,
            mesh=mesh,
            in_specs=(PartitionSpec(), *[PartitionSpec(_AXIS)] * arity),
            out_specs=PartitionSpec(_AXIS),
            check_vma=False,
        )
        return jax.jit(spread, donate_argnums=donate)

    def apply(shared: Any, *runs: Any) -> Any:
        num_runs = jax.tree.leaves(runs)[0].shape[0]
        mesh = run_mesh(num_runs)
        if mesh not in compiled:
            compiled[mesh] = build(mesh, len(runs))
        extra = -num_runs % mesh.size
        padded = jax.device_put(_pad(runs, extra), NamedSharding(mesh, PartitionSpec(_AXIS)))
        shared = jax.device_put(shared, NamedSharding(mesh, PartitionSpec()))
        results = compiled[mesh](shared, *padded)
        return jax.tree.map(lambda x: x[:num_runs], results) if extra else results

    return apply


def run_mesh(num_runs: int) -> Mesh:
    """The devices that a population of this size runs on, as one axis."""
    devices = jax.local_devices()[:num_runs]
    return jax.make_mesh((len(devices),), (_AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def at_one_time(num_runs: int) -> int:
    """How many runs of a population are being worked on at any moment."""
    return num_runs if _is_accelerator() else min(num_runs, jax.local_device_count())


def memory_available() -> int:
    """Bytes that a program may take: of the accelerators, or of the machine's free memory."""
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in jax.local_devices()]
    if _is_accelerator() and all(limits):
        return sum(limit for limit in limits if limit)
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _pad(runs: Any, extra: int) -> Any:
    if extra == 0:
        return runs
    return jax.tree.map(lambda x: jnp.concatenate([x, jnp.repeat(x[-1:], extra, 0)]), runs)


def _is_accelerator() -> bool:
    return jax.default_backend() != "cpu"
