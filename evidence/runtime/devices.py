"""One program over many runs, on whatever devices and hosts there are.

`shard` lays a population out over the devices, `over_runs` works on it there, and `fetch` brings
the results back. No device ever waits for another in between: runs know nothing of each other, and
there is no collective in any program (on a CPU with fewer cores than devices one can deadlock).
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import ContextVar, copy_context
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from evidence.runtime import compiling

_AXIS = "runs"
# 2,000 samples took the MLP 67 ms on an H100 by 256 at a time, and 24 ms by 2,048.
_WIDER = 256
# For much of a job on an accelerator only the host is busy: it compiles, cuts and writes.
_JOBS_A_DEVICE = 4
_PLACES = (
    ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)
_LONGEST_WAIT_S = 7 * 24 * 3600
Job = TypeVar("Job")
Done = TypeVar("Done")
_own: ContextVar[jax.Device | None] = ContextVar("own", default=None)
"""The device that a job of `side_by_side` keeps to."""


def configure(compilation_cache: bool | str = True, *, join: bool = True) -> None:
    """Set JAX up for an experiment; call before JAX is first used.

    One CPU device a core, since one small run can't fill two cores and two runs can
    (`JAX_NUM_CPU_DEVICES` overrides that); products of matrices in full float32, for what a GPU
    takes by default (TF32) moves answers by 0.002 where this moves them by 1e-6; compiled programs
    kept on disk, so that a second run starts at once; and where the environment says that this is
    one process of several, it joins the others.

    Args:
      compilation_cache: True for the user's cache folder, a path, or False for none.
      join: False keeps each process by itself, for an experiment whose processes share a folder.
    """
    if "JAX_NUM_CPU_DEVICES" not in os.environ:
        jax.config.update("jax_num_cpu_devices", os.cpu_count())
    jax.config.update("jax_default_matmul_precision", "highest")
    if compilation_cache is not False:
        default = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "goodharts-jax"
        folder = default if compilation_cache is True else Path(compilation_cache)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        # Small ones, too: most of a run's programs are, and each is loaded sooner than compiled.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    if join:
        join_processes()


def join_processes() -> None:
    """Become one of several processes, if the environment asks for it; else do nothing.

    `JAX_COORDINATOR_ADDRESS`, `JAX_NUM_PROCESSES` and `JAX_PROCESS_ID` say it by hand; under
    `srun` or `mpirun` with several tasks JAX finds them itself.
    """
    environment = os.environ
    by_hand = "JAX_COORDINATOR_ADDRESS" in environment
    if jax.distributed.is_initialized() or not (by_hand or place().of > 1):
        return
    given: dict[str, Any] = {
        name: int(environment[variable])
        for name, variable in (
            ("num_processes", "JAX_NUM_PROCESSES"),
            ("process_id", "JAX_PROCESS_ID"),
        )
        if variable in environment
    }
    # A host that swaps, or was suspended, is not dead yet.
    jax.distributed.initialize(heartbeat_timeout_seconds=600, **given)


class Place(NamedTuple):
    """Which of several processes this one is: a number from 0, of so many."""

    number: int
    of: int


def place() -> Place:
    """What the environment says of this process, whether it has joined the others or not.

    Raises:
      ValueError: there is no such place.
    """
    for index, of in _PLACES:
        if of in os.environ and int(os.environ[of]) > 1:
            found = Place(int(os.environ.get(index, "-1")), int(os.environ[of]))
            if not 0 <= found.number < found.of:
                given = os.environ.get(index)
                raise ValueError(f"{index}={given}: of {of}={found.of} processes they are 0 and up")
            return found
    return Place(0, 1)


def spread(jobs: Sequence[Job], do: Callable[[Job], Done]) -> list[Done]:
    """`do` of every job, in their order, in every process: each does a part of them, and all tell
    each other what they found.

    Args:
      jobs: the same in all processes.
      do: what is found must go through pickle; it may use this process' devices alone.
    """
    index, of = jax.process_index(), jax.process_count()
    own = [do(job) for job in jobs[index::of]]
    if of == 1:
        return own
    content = np.frombuffer(pickle.dumps(own), np.uint8)
    wait_for_all("spread")
    sizes = multihost_utils.process_allgather(np.int32(len(content))).tolist()
    filled = np.zeros(max(sizes), np.uint8)
    filled[: len(content)] = content
    every = multihost_utils.process_allgather(filled)
    parts = [pickle.loads(row[:size].tobytes()) for row, size in zip(every, sizes, strict=True)]
    return [parts[number % of][number // of] for number in range(len(jobs))]


def wait_for_all(name: str) -> None:
    """Go on when every process is here, however long the others take."""
    if jax.process_count() > 1:
        import orbax.checkpoint as ocp

        ocp.multihost.sync_global_processes(name, timeout=_LONGEST_WAIT_S)


def same_in_all_processes(number: int) -> bool:
    """Whether every process came to the same number."""
    return bool(np.all(multihost_utils.process_allgather(np.int32(number)) == number))


def shard(runs: Any, *, block: int = 1) -> Any:
    """Lay a population out over the devices, for functions made by `over_runs`.

    Args:
      runs: pytree of arrays of this host, each with a leading axis of runs; several processes pass
        the same.
      block: how many a device works on side by side, as `over_runs` was told.

    Returns:
      The same as global arrays, filled up with copies of the last run to whole blocks on every
      device.
    """
    num_runs = jax.tree.leaves(runs)[0].shape[0]
    mesh = _mesh(-(-num_runs // block))
    extra = -num_runs % (mesh.size * block)
    sharding = NamedSharding(mesh, PartitionSpec(_AXIS))

    def fill(host: np.ndarray) -> np.ndarray:
        return np.concatenate([host, np.repeat(host[-1:], extra, axis=0)]) if extra else host

    return jax.tree.map(lambda leaf: _put(leaf, sharding, fill), runs)


def fetch(runs: Any, num_runs: int) -> Any:
    """Fetch the first `num_runs` runs of what `over_runs` made, the copies left behind.

    Returns:
      NumPy arrays, random keys excepted, in every process.
    """

    def bare(leaf: jax.Array) -> jax.Array:
        return jax.random.key_data(leaf) if is_key(leaf) else leaf

    of_many = partial(multihost_utils.process_allgather, tiled=True)
    get = jax.device_get if jax.process_count() == 1 else of_many
    fetched = get(jax.tree.map(bare, runs))

    def cut(leaf: jax.Array, host: np.ndarray) -> Any:
        if is_key(leaf):
            return jax.random.wrap_key_data(
                jnp.asarray(host[:num_runs]), impl=jax.random.key_impl(leaf)
            )
        return host[:num_runs]

    return jax.tree.map(cut, runs, fetched)


def over_runs(
    function: Callable[..., Any],
    *,
    donate: tuple[int, ...] = (),
    block: int | None = None,
    brief: bool = False,
) -> Lifted:
    """Lift a function of one run to a whole population.

    Args:
      function: `(shared, *run) -> result`, pure; all are pytrees, `run` and `result` of one run.
      donate: positions of arguments whose memory may be used for the results.
      block: how many a device works on side by side. By default all of its runs on an accelerator,
        and one on a CPU, for caches hold one run and not ten (benchmarks/population.py compares).
      brief: whether it is soon done, see `compiling.in_brief`.
    """
    return Lifted(function, donate, block, brief)


class Lifted:
    """A jitted `(shared, *runs) -> results`.

    `runs` come from `shard` or from another such function, as many of them in all, and `results`
    are laid out likewise.
    """

    def __init__(
        self, function: Callable[..., Any], donate: tuple[int, ...], block: int | None, brief: bool
    ):
        self._function, self._donate, self._block, self._brief = function, donate, block, brief
        self._programs: dict[Mesh, Any] = {}

    def __call__(self, shared: Any, *runs: Any) -> Any:
        """The results of all runs."""
        program, shared = self._program(shared, runs)
        return program(shared, *runs)

    def lower(self, shared: Any, *runs: Any) -> jax.stages.Lowered:
        """What a call of these, or of `shapes`, would compile, traced; then it finds it compiled.
        Another thread may compile it: tracing takes Python for itself, and compiling doesn't.
        """
        program, shared = self._program(shared, runs)
        return program.lower(shared, *runs)

    def shapes(self, shared: Any, *runs: Any) -> Any:
        """Shapes, types and layout of the results of a call."""
        program, shared = self._program(shared, runs)
        laid_out = NamedSharding(_mesh_of(runs), PartitionSpec(_AXIS))

        def shape(result: Any) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct(result.shape, result.dtype, sharding=laid_out)

        return jax.tree.map(shape, jax.eval_shape(program, shared, *runs))

    def _program(self, shared: Any, runs: tuple[Any, ...]) -> tuple[Any, Any]:
        mesh = _mesh_of(runs)
        program = self._programs.get(mesh)
        if program is None:  # of several threads that find none, all take the one that was first
            program = self._programs.setdefault(mesh, self._build(mesh, len(runs)))
        everywhere = NamedSharding(mesh, PartitionSpec())
        return program, jax.tree.map(lambda leaf: _put(leaf, everywhere), shared)

    def _build(self, mesh: Mesh, arity: int) -> Any:
        def local(shared: Any, *runs: Any) -> Any:
            def one(run: Any) -> Any:
                return self._function(shared, *run)

            if self._block is not None:
                return jax.lax.map(one, runs, batch_size=self._block)
            return for_each(one, runs)

        lifted = jax.shard_map(
            local,
            mesh=mesh,
            in_specs=(PartitionSpec(), *[PartitionSpec(_AXIS)] * arity),
            out_specs=PartitionSpec(_AXIS),
            check_vma=False,
        )
        return jax.jit(
            lifted,
            donate_argnums=self._donate,
            out_shardings=NamedSharding(mesh, PartitionSpec(_AXIS)),
            compiler_options=compiling.in_brief() if self._brief else None,
        )


def _mesh_of(runs: Any) -> Mesh:
    return jax.tree.leaves(runs)[0].sharding.mesh


def for_each(function: Callable[[Any], Any], items: Any) -> Any:
    """`function` of every item along the leading axis: one after the other on a CPU, whose cache
    holds one, and all side by side on an accelerator, which a single one leaves idle.
    """
    return jax.vmap(function)(items) if _is_accelerator() else jax.lax.map(function, items)


def at_once(chunk: int) -> int:
    """How many to work on side by side, of which `chunk` fit a CPU's cache: an accelerator is only
    filled by many times as many.
    """
    return chunk * _WIDER if _is_accelerator() else chunk


def side_by_side(
    function: Callable[[Any], object], jobs: Iterable[Any], program: Callable[[Any], Hashable]
) -> None:
    """`function(job)` for every job, as many at a time as this host has CPU devices, or a few for
    each of its accelerators.

    Each runs in a thread, on one device, which is also all that `shard` lays anything out on
    there. A CPU's threads share the first device, which works on what all of them want at one
    time: what one has compiled the others need not. The first error is raised, and so is Ctrl-C;
    jobs under way are still finished.

    Args:
      function: what is to be done with a job; called from several threads.
      jobs: in the order in which they are wanted.
      program: what a job's programs are known by. Two threads that want one at a time both compile
        it, so jobs of one program stay with one thread as long as the others have something else
        to do.
    """
    waiting, owners, lock = [(job, program(job)) for job in jobs], dict[Hashable, int](), Lock()

    def take(thread: int) -> tuple[Any, Hashable] | None:
        with lock:
            if not waiting:
                return None
            item = next((it for it in waiting if owners.get(it[1], thread) == thread), waiting[0])
            owners.setdefault(item[1], thread)
            waiting.remove(item)
            return item

    def work(thread: int, device: jax.Device) -> None:
        _own.set(device)
        with jax.default_device(device):
            while (item := take(thread)) is not None:
                function(item[0])

    devices, threads = job_devices(), len(jax.local_devices())
    devices = devices * (_JOBS_A_DEVICE if _is_accelerator() else threads)
    pool = ThreadPoolExecutor(len(devices))
    try:
        places = enumerate(devices)
        started = [pool.submit(copy_context().run, work, *place) for place in places]
        for ended in as_completed(started):
            ended.result()
    finally:
        waiting.clear()
        pool.shutdown(wait=False)


def job_devices() -> list[jax.Device]:
    """The devices that jobs run on `side_by_side`."""
    return jax.local_devices() if _is_accelerator() else jax.local_devices()[:1]


def at_one_time(num_runs: int) -> int:
    """How many runs of a population this host works on at any moment."""
    mesh = _mesh(num_runs)
    local = len(mesh.local_devices)
    return -(-num_runs // mesh.size) * local if _is_accelerator() else local


def memory_available() -> int:
    """Bytes that a program may take: of the accelerators, or of the machine's free memory."""
    limits = [(device.memory_stats() or {}).get("bytes_limit") for device in jax.local_devices()]
    if _is_accelerator() and all(limits):
        return sum(limit for limit in limits if limit)
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _mesh(num_blocks: int) -> Mesh:
    """As many devices as there is work for; of several processes all, for each must take part; of
    jobs `side_by_side` the job's own.
    """
    if (own := _own.get()) is not None:
        devices = [own]
    else:
        devices = jax.devices() if jax.process_count() > 1 else jax.devices()[:num_blocks]
    return jax.make_mesh((len(devices),), (_AXIS,), axis_types=(AxisType.Auto,), devices=devices)


def _put(
    leaf: Any, sharding: NamedSharding, fill: Callable[[np.ndarray], np.ndarray] = lambda x: x
) -> jax.Array:
    """An array of this host as a global one; each device gets its part of `fill(array)`."""
    if isinstance(leaf, jax.Array) and is_key(leaf):
        data = _put(jax.random.key_data(leaf), sharding, fill)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
    # Not by way of JAX, which compiles a program for every shape that comes from the host.
    host = fill(np.asarray(leaf, jax.dtypes.result_type(leaf)))
    return jax.make_array_from_callback(host.shape, sharding, lambda part: host[part])


def is_key(leaf: Any) -> bool:
    """Whether an array is one of typed random keys."""
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _is_accelerator() -> bool:
    return jax.default_backend() != "cpu"
