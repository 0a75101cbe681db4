"""Results as objects: written, read back, tabulated; and what is wrong with a file is named."""

import json
import subprocess
import sys

import numpy as np
import pytest
from pydantic import ValidationError

import evidence
from evidence import Condition, Measurement, rule
from evidence.record import Integers, Number, Numbers, Record
from evidence.results import Manifest, Results
from evidence.runtime import files

MEASURED = Measurement(0.5, 0.4, 0.6, 3, "run", "t 95%")


class Part(Record):
    """A part of results."""

    speed: Measurement
    """Steps a second."""
    curve: Numbers
    """f64[T]."""
    counts: Integers
    """i64[T]."""
    last: Number
    """The end of the curve."""


class Whole(Results):
    """Results of a made-up experiment."""

    parts: dict[str, Part]
    """By name."""
    rows: tuple[Part, ...] = ()
    """Details."""


@pytest.fixture
def whole():
    curve = np.array([1.0, np.nan])
    part = Part(speed=MEASURED, curve=curve, counts=np.array([3, 4]), last=float("nan"))
    condition = Condition(
        name="gap", role="supports", wanted="above 0", state="met", measured={"gap": MEASURED}
    )
    manifest = Manifest.now({"seed": np.int64(3)}, [3, 4])
    return Whole(
        manifest=manifest, thesis=rule("s", [condition]), parts={"one": part}, rows=(part,)
    )


def test_what_is_written_is_read_back(whole, tmp_path):
    assert whole.parts["one"].curve == (1.0, None) and whole.parts["one"].last is None
    path = whole.save(tmp_path / "deep")
    assert Whole.load(tmp_path / "deep") == whole
    assert json.loads(path.read_text())["parts"]["one"]["speed"] == vars(MEASURED)


def test_results_do_not_change(whole):
    with pytest.raises(ValidationError):
        whole.warnings = ("other",)
    with pytest.raises(ValidationError, match="extra"):
        Part(speed=MEASURED, curve=(), counts=(), last=None, unknown=1)


def test_measurements_have_places_and_lists_are_details(whole):
    assert list(whole.measurements()) == [("parts.one.speed", MEASURED)]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_has_a_row_for_each_measurement(whole, library):
    pytest.importorskip(library)
    frame = whole.to_frame(library)
    assert list(frame.columns) == [
        "place", "name", "value", "low", "high", "n", "unit", "method",
    ]  # fmt: skip
    assert list(frame["place"]) == ["parts.one"] and list(frame["value"]) == [0.5]


def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"pip install polars"):
        whole.to_frame()


def test_parquet_stands_beside_json(whole, tmp_path):
    polars = pytest.importorskip("polars")
    whole.save(tmp_path)
    frame = polars.read_parquet(tmp_path / "results.parquet")
    assert frame.equals(whole.to_frame())


def test_the_schema_tells_what_each_field_holds():
    schema = Whole.model_json_schema()
    assert schema["$defs"]["Part"]["properties"]["speed"]["description"] == "Steps a second."
    assert schema["$defs"]["Part"]["additionalProperties"] is False


def test_loading_a_folder_without_results_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"is .* the output folder of a run"):
        evidence.load(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object is needed"),
        ('{"other": 1}', "no experiment writes results with only other"),
        ('{"modes": 3}', r"results\.json at \w+"),
    ],
)
def test_a_file_that_is_no_results_is_named_with_the_place(tmp_path, text, message):
    files.write_text(tmp_path / "results.json", text)
    with pytest.raises(ValueError, match=message) as raised:
        evidence.load(tmp_path)
    assert str(tmp_path) in str(raised.value)


def test_a_manifest_says_what_made_the_results():
    made = Manifest.now({"seed": np.int64(3)}, [3, 4])
    assert made.configuration == {"seed": 3} and made.seeds == (3, 4)
    assert {"python", "jax", "numpy"} <= set(made.versions)
    assert made.device.count >= 1 and made.device.platform
    assert Manifest(**json.loads(json.dumps(files.plain(made)))) == made


def test_reading_results_does_not_load_jax():
    code = "import evidence, sys; print(sorted({'jax', 'scipy', 'matplotlib'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
