import importlib.util
import json
import sqlite3
import struct

import pytest

from evidence.measurement import Measurement
from evidence.runtime import tracking


def numbers(course):
    """(name, step, value) of all scalars in a folder of event files."""
    events = pytest.importorskip("tensorboardX.proto.event_pb2")
    for path in sorted(course.glob("events.*")):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack("<Q", data[:8])
            event = events.Event.FromString(data[12 : 12 + length])
            yield from ((v.tag, event.step, v.simple_value) for v in event.summary.value)
            data = data[16 + length :]


def test_event_files_hold_each_courses_numbers_and_what_was_found(tmp_path):
    pytest.importorskip("tensorboardX")
    ku = Measurement(1.5, 1.0, 2.0, 5, "replicate", "t 95%")
    nothing = Measurement(None, None, None, 0, "replicate", "undefined")
    with tracking.tracking("tensorboard", "kubku", tmp_path) as log:
        log("proxy-42", 10, {"reward": 0.5, "deaths": 3})
        log("truth-42", 10, {"reward": 0.25})
        log("proxy-42", 20, {"reward": 1.0})
        places = [("families.stories.mlp.KU", ku), ("families.stories.mlp.BKU", nothing)]
        tracking.measured(log, [*places, ("ratio", ku)])
    told = {path.name: list(numbers(path)) for path in (tmp_path / "tensorboard").iterdir()}
    assert told == {
        "proxy-42": [("reward", 10, 0.5), ("deaths", 10, 3.0), ("reward", 20, 1.0)],
        "truth-42": [("reward", 10, 0.25)],
        "families.stories": [("mlp/KU", 0, 1.5)],
        "ratio": [("ratio", 0, 1.5)],
    }


def test_trackio_keeps_each_course_as_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path))
    pytest.importorskip("trackio")
    with tracking.tracking("trackio", "goodhart", tmp_path / "mine") as log:
        log("proxy-42", 10, {"reward": 0.5})
        log("truth-42", 10, {"reward": 0.25})
        log("proxy-42", 20, {"reward": 1.0})
    with sqlite3.connect(tmp_path / "goodhart.db") as kept:
        rows = list(
            kept.execute("select run_name, step, metrics from metrics order by run_name, step")
        )
    assert [(name, step, json.loads(metrics)) for name, step, metrics in rows] == [
        ("mine/proxy-42", 10, {"reward": 0.5}),
        ("mine/proxy-42", 20, {"reward": 1.0}),
        ("mine/truth-42", 10, {"reward": 0.25}),
    ]


def test_a_tracker_that_is_absent_is_said_and_none_needs_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"tracker=trackio .*goodharts-jax\[trackio\]"):
        tracking.require("trackio")
    with tracking.tracking("none", "goodhart", tmp_path) as log:
        log("proxy-42", 10, {"reward": 0.5})
    assert list(tmp_path.iterdir()) == []
