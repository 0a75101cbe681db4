"""Whatever befalls a run: one line that names the file and the way out, and nothing is lost."""

import contextlib
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.conftest import results

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("number", range(3))
def test_what_a_kill_leaves_is_gone_on_with(shop, number, record_property):
    moment = list(shop.wing.moments)[number]
    folder = shop.copy(moment, f"killed {moment}")
    record_property("tried", f"{shop.name}: killed {moment}")
    ended = shop(folder)
    assert ended.returncode == 0, ended.stderr
    assert results(folder) == shop.alone
    assert (folder / "report.html").exists()


def test_what_befalls_a_folder_is_a_line_and_a_rerun_mends_it(shop, record_property):
    """One after the other in one folder, which had just begun its results."""
    middle = list(shop.wing.moments)[1]
    folder = shop.copy(middle, "unlucky")
    way = f"go on with {shop.wing.go_on}={folder}"
    full = shop.refused(folder, at=r"results\.json", error="ENOSPC")
    assert full == f"{folder}/results.json: No space left on device; that mended, {way}"
    record_property("tried", f"{shop.name}: the disk is full")

    locked = shop.refused(folder, at=".", error="EROFS")
    assert str(folder) in locked and "Read-only file system" in locked
    record_property("tried", f"{shop.name}: the folder is read-only")

    with holding(folder):
        assert shop.refused(folder) == (
            f"{folder}: another run is at work in this folder; wait for its end, or give another "
            "folder"
        )
    record_property("tried", f"{shop.name}: two runs in one folder")

    stopped = shop.refused(folder, at=r"results\.json", error="SIGINT")
    assert stopped == f"interrupted; {way}"
    record_property("tried", f"{shop.name}: Ctrl-C")

    (folder / "results.json").write_bytes(b'{"thesis": \xff')
    assert shop(folder).returncode == 0
    assert results(folder) == shop.alone
    record_property("tried", f"{shop.name}: garbled results")

    other = shop.refused(folder, "seed=7")
    assert "settings" in other or "seeds: not those of the run" in other
    record_property("tried", f"{shop.name}: other settings in its folder")


def test_a_file_in_a_folders_place_is_named(shop, record_property):
    (shop.place / "taken").write_text("mine")
    line = shop.refused(shop.place / "taken")
    assert str(shop.place / "taken") in line
    (shop.place / "mine").write_text("mine")
    assert str(shop.place / "mine") in shop.refused(shop.place / "mine" / "below")
    record_property("tried", f"{shop.name}: a file where a folder is to be")


@contextlib.contextmanager
def holding(folder):
    """Another run's hold on a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


# ---- what a run reads back ----------------------------------------------------------------------

GARBLED = {
    "goodhart": [("config.yaml", "begin anew in another folder")],
    "epistemic": [("answers/kg_oracle.jsonl", "move it away, and it is written anew")],
    "kubku": [("settings.json", "begin anew in another folder")],
}
DAMAGES = {
    "garbled": lambda content: b"{[garbled\n" + content,
    "not UTF-8": lambda content: b"\xff\xfe" + content,
    "a line of 10 MB": lambda content: b"[" * 10_000_000 + b"\n" + content,
}


def test_a_garbled_file_is_named_with_the_way_out(shop, record_property):
    folder = shop.copy(list(shop.wing.moments)[2], "garbled")
    for name, way in GARBLED[shop.name]:
        whole = (folder / name).read_bytes()
        for damage, change in DAMAGES.items():
            (folder / name).write_bytes(change(whole))
            line = shop.refused(folder)
            assert line.startswith(str(folder / name)) and line.endswith(way), line
            record_property("tried", f"{shop.name}: {name}: {damage}")
        (folder / name).write_bytes(whole)
    if shop.name == "epistemic":  # the way out, taken
        (folder / name).unlink()
    if shop.name == "goodhart":
        (checkpoint := folder / "checkpoints" / "8").rename(folder / "whole")
        cut(folder / "whole", checkpoint)
        shutil.rmtree(folder / "whole")
        record_property("tried", "goodhart: the newest checkpoint is truncated")
    if shop.name == "kubku":
        for path in (folder / "cells").rglob("*.npz"):
            path.write_bytes(path.read_bytes()[:-40])
        record_property("tried", "kubku: cells are truncated")
    ended = shop(folder)
    assert ended.returncode == 0, ended.stderr
    assert results(folder) == shop.alone
    if shop.name == "goodhart":
        assert "8 updates can't be read; going on from the one before it" in ended.stderr


def cut(whole, copy):
    """A copy of a folder, every file of it cut."""
    shutil.copytree(whole, copy)
    for path in filter(Path.is_file, copy.rglob("*")):
        os.truncate(path, path.stat().st_size // 2)


def test_settings_are_not_changed_at_resume(shop, record_property):
    folder = shop.moment(list(shop.wing.moments)[1])
    if shop.wing.go_on != "resume":
        pytest.skip("it goes on by the same command in the same folder")
    line = shop.refused(folder, f"resume={folder}", "seed=7")
    assert "leave out" in line or "made with other settings of seed" in line
    record_property("tried", f"{shop.name}: other settings at resume=")


# ---- signals, as they come ----------------------------------------------------------------------


def started(shop, folder, **faults):
    """In a process of its own."""
    told = json.dumps({"folder": str(folder), **faults})
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.broken", shop.name, told, *shop.arguments(folder)],
        cwd=shop.place,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.full)])
def test_killed_at_random_moments(shop, kills, record_property):
    """Each of its file operations as likely as any other."""
    counted = shop(shop.place / f"counted{kills}", at="$nothing").stdout
    operations = int(counted.rpartition("operations: ")[2])
    chance, ends = random.Random(kills), []
    for number in range(kills):
        folder, moment = shop.place / f"random{kills}_{number}", chance.randrange(operations)
        process = started(shop, folder, at=".", which=moment, error="SIGKILL")
        process.communicate()
        ends.append(process.returncode)
        ended = shop(folder)
        assert ended.returncode == 0, (moment, ended.stderr)
        assert results(folder) == shop.alone, moment
        record_property("tried", f"{shop.name}: SIGKILL before operation {moment}")
    # Fewer operations than were counted, where threads ran otherwise.
    assert set(ends) <= {-signal.SIGKILL, 0} and ends.count(-signal.SIGKILL) > kills // 2


@pytest.mark.full
def test_a_second_ctrl_c_ends_it_at_once_and_without_a_trace(shop, record_property):
    folder = shop.place / "twice"
    at, _ = list(shop.wing.moments.values())[1]
    process = started(shop, folder, at=at, error="SIGINT")
    while (line := process.stderr.readline()) and "interrupted" not in line:
        pass
    process.send_signal(signal.SIGINT)
    errors = line + process.communicate()[1]
    assert process.returncode in (130, -signal.SIGINT) and "Traceback" not in errors
    assert shop(folder).returncode == 0 and results(folder) == shop.alone
    record_property("tried", f"{shop.name}: Ctrl-C twice")


@pytest.mark.full
def test_a_disk_that_is_really_full_and_one_that_is_really_read_only(shop, record_property):
    disk = shop.place / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", disk]).returncode:
        pytest.skip("it takes the right to mount a small disk")
    try:
        line = refused_by_itself(shop, disk / "run")
        assert "No space left on device" in line and str(disk) in line
        subprocess.run(["mount", "-o", "remount,size=64m,ro", disk], check=True)
        line = refused_by_itself(shop, disk / "run")
        assert "Read-only file system" in line and str(disk) in line
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
        assert shop(disk / "run").returncode == 0
        assert results(disk / "run") == shop.alone
    finally:
        # The process that serves the others may have its log open.
        subprocess.run(["umount", "--lazy", disk], check=True)
    record_property("tried", f"{shop.name}: a tmpfs that is full, then read-only")


def refused_by_itself(shop, folder):
    """The line that a process of its own ends in: what it had open is closed."""
    process = started(shop, folder)
    errors = process.communicate()[1]
    assert process.returncode == 2 and "Traceback" not in errors, errors
    return errors.splitlines()[-1]
