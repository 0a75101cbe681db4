"""Where a run's seconds go."""

import io
import threading
import time
from contextvars import copy_context

import jax
import jax.numpy as jnp
from rich.console import Console

from benchmarks.command import split
from evidence.runtime import timings


def test_what_intervals_cover_together_is_counted_once():
    # [0, 3] and [2, 4] overlap, [2.5, 2.6] lies within them, [6, 7] apart: 4 + 1.
    assert timings.covered([(6, 7), (0, 3), (2.5, 2.6), (2, 4)]) == 5
    assert timings.covered([]) == 0


def test_a_part_within_a_part_is_counted_to_the_inner_alone():
    counted = timings.Timings(before=2.0)
    with counted.part("assessment"):
        time.sleep(0.02)
        with counted.part("evaluation"):
            time.sleep(0.2)
    assert list(counted.parts) == ["start", "evaluation", "assessment"]
    assert 2.0 <= counted.parts["start"] < 2.1
    assert counted.parts["evaluation"] >= 0.2 > counted.parts["assessment"] >= 0.02


def test_a_run_ends_with_a_line_that_the_benchmark_reads():
    told = io.StringIO()
    with timings.counting(True, Console(file=told, width=60)), timings.part("training"):
        jax.jit(lambda x: x * 3 + 1)(jnp.arange(7.0)).block_until_ready()
        time.sleep(0.11)
    found = split(told.getvalue())
    assert found["parts"]["training"] >= 0.1
    assert set(found["parts"]) == {"start", "training", "rest", "total"}
    assert abs(sum(found["parts"].values()) - 2 * found["parts"]["total"]) < 0.3
    assert set(found["jax"]) == {"tracing", "lowering", "compiling", "loading"}
    assert found["programs"] >= 1


def test_threads_side_by_side_have_parts_of_their_own():
    """Two threads within one part: their seconds are added up, and the part keeps its own."""
    told, both = io.StringIO(), threading.Barrier(2)

    def work(job):
        both.wait(10)
        with timings.part("base states"):
            time.sleep(0.1)
            with timings.part("tuning"):
                time.sleep(0.3)

    with timings.counting(True, Console(file=told, width=60)), timings.part("cells"):
        threads = [threading.Thread(target=copy_context().run, args=(work, i)) for i in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = split(told.getvalue())
    assert set(found["parts"]) == {"start", "cells", "rest", "total"}
    assert found["parts"]["cells"] >= 0.4
    assert set(found["beside"]) == {"base states", "tuning"}
    assert found["beside"]["tuning"] >= 0.6 and found["beside"]["base states"] >= 0.2


def test_nothing_is_counted_or_said_unless_wanted():
    told = io.StringIO()
    with timings.counting(False, Console(file=told)), timings.part("training"):
        pass
    assert not told.getvalue()
