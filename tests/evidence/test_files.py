import errno
import json
import math
import os

import jax.numpy as jnp
import numpy as np
import pytest

from evidence.measurement import Measurement
from evidence.runtime import files


def test_plain_turns_everything_into_json():
    value = {
        "measured": Measurement(0.5, float("-inf"), None, 3, "run", "t 95%"),
        "arrays": (jnp.array([1, 2]), np.float32(0.5), np.array([np.nan, 1.0])),
        4: math.nan,
    }
    assert files.plain(value) == {
        "measured": {
            "value": 0.5,
            "low": None,
            "high": None,
            "n": 3,
            "unit": "run",
            "method": "t 95%",
        },
        "arrays": [[1, 2], 0.5, [None, 1.0]],
        "4": None,
    }


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = files.write_text(tmp_path / "results.json", "old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_another_library_writes_is_whole_or_not_there(tmp_path):
    def stop_half_way(stream):
        stream.write(b"half")
        raise OSError("no more")

    files.write_by(tmp_path / "new", lambda stream: stream.write(b"whole"))
    with pytest.raises(OSError, match="no more"):
        files.write_by(tmp_path / "new", stop_half_way)
    assert (tmp_path / "new").read_bytes() == b"whole"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    monkeypatch.setattr(os, "write", full)
    for write in (files.write_text, files.append_jsonl):
        with pytest.raises(OSError, match="No space left") as caught:
            write(tmp_path / "kept.json", {} if write is files.append_jsonl else "text")
        assert caught.value.filename == str(tmp_path / "kept.json")


def test_what_is_no_number_is_null_in_json(tmp_path):
    path = files.write_json(tmp_path / "results.json", {"x": math.nan})
    assert json.loads(path.read_text()) == {"x": None}


def test_jsonl_grows_by_whole_lines(tmp_path):
    path = tmp_path / "new" / "metrics.jsonl"
    for step in range(3):
        files.append_jsonl(path, {"step": step, "loss": np.float32(0.5), "bad": math.inf})
    records = list(files.read_jsonl(path, required=("step",)))
    assert [record["step"] for record in records] == [0, 1, 2]
    assert records[0] == {"step": 0, "loss": 0.5, "bad": None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 2', "line 2: not JSON"),
        ('{"a": 1}\n\n[1]\n', "line 3: a JSON object is needed"),
        ('{"a": 1}\n{"b": 2}\n', "line 2: the field 'a' is missing"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, message):
    path = tmp_path / "cards.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        list(files.read_jsonl(path, required=("a",)))


def test_a_line_is_whole_though_the_system_takes_it_in_parts(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(os, "write", lambda at, content: write(at, content[:3]))
    files.append_jsonl(tmp_path / "log.jsonl", {"number": 12345})
    assert list(files.read_jsonl(tmp_path / "log.jsonl")) == [{"number": 12345}]


@pytest.mark.parametrize(
    ("line", "why"),
    [(b'{"a": "\xff"}', "not UTF-8"), (b"1" * 5000, "not JSON"), (b"[" * 99999, "not JSON")],
)
def test_a_line_that_python_cannot_take_is_named(tmp_path, line, why):
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"{}\n" + line)
    with pytest.raises(ValueError, match=f"{path}, line 2: {why}"):
        list(files.read_jsonl(path))


def test_a_folder_belongs_to_one_run_until_that_ends(tmp_path):
    again = pytest.raises(ValueError, match="another run is at work")
    with files.alone(tmp_path / "run"), again, files.alone(tmp_path / "run"):
        pass
    with files.alone(tmp_path / "run"):
        pass


@pytest.mark.parametrize("content", [b"\xff", b"{[", b"a: !!python/name:os.system", b"", b"[1]"])
@pytest.mark.parametrize("name", ["config.yaml", "settings.json"])
def test_garbled_settings_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name}: garbled \("):
        files.read_plain(tmp_path / name)
