"""Jobs side by side, one a thread."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from evidence.runtime.devices import Lifted, over_runs, shard

JOBS = """
import threading, jax, numpy as np
from evidence.runtime.devices import fetch, over_runs, side_by_side, shard

doubled = over_runs(lambda shared, run: shared * run)
seen, both = [], threading.Barrier(2)

def job(it):
    number, program = it
    if number < LOCKSTEP:
        both.wait(60)  # two are under way at one time, or this times out
    runs = shard(np.arange(4.0))
    assert (fetch(doubled(2.0, runs), 4) == 2 * np.arange(4)).all()
    assert (doubled(2.0, runs).devices() == {jax.config.jax_default_device}), runs.devices()
    seen.append((number, program, threading.get_ident()))
"""


@pytest.mark.processes
def test_each_job_is_done_once_and_threads_share_their_programs(on_devices):
    lines = on_devices(
        JOBS
        + """
LOCKSTEP = 20
side_by_side(job, [(i, i % 2) for i in range(20)], lambda it: it[1])
assert sorted(number for number, _, _ in seen) == list(range(20))
print(len({(program, thread) for _, program, thread in seen}))
print([program._cache_size() for program in doubled._programs.values()])
print(len(shard(np.arange(4.0)).devices()))
""",
        2,
    )
    assert lines[0] == "2", "a program with jobs left stays with the thread that has compiled it"
    assert lines[1] == "[1]", "one program, on one device, for all threads"
    assert lines[2] == "2", "outside of jobs, all devices are used again"


@pytest.mark.processes
def test_a_thread_without_jobs_of_its_own_helps(on_devices):
    lines = on_devices(
        JOBS
        + """
LOCKSTEP = 2
side_by_side(job, [(i, "one") for i in range(20)], lambda it: it[1])
print(len({thread for *_, thread in seen}))
""",
        2,
    )
    assert lines == ["2"]


@pytest.mark.processes
def test_the_first_error_ends_it_and_is_raised(on_devices):
    lines = on_devices(
        """
import time
from evidence.runtime.devices import side_by_side

done = []
def job(number):
    if number == 1:
        raise ValueError("job 1")
    time.sleep(0.2)
    done.append(number)

try:
    side_by_side(job, range(1000), lambda number: number)
except ValueError as error:
    print(error)
print(len(done) < 10)
""",
        2,
    )
    assert lines == ["job 1", "True"]


def test_threads_that_want_a_program_at_one_time_share_it(monkeypatch):
    """Both find none and build one: the second's is left, or its compilation would be lost."""
    both, build = Barrier(2), Lifted._build

    def slowly(self, mesh, arity):
        both.wait(timeout=60)
        return build(self, mesh, arity)

    monkeypatch.setattr(Lifted, "_build", slowly)
    lifted, runs = over_runs(lambda shared, run: shared * run), shard(np.arange(2.0))
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: lifted._program(2.0, (runs,))[0], range(2))
    assert first is second
