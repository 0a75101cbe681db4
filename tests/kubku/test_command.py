"""The command, end to end: a page, results that fit their schema, resuming, errors for people."""

import json
import textwrap
from functools import partial
from importlib import resources

import jax
import jsonschema
import pytest
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf

from evidence.answers import Answer
from evidence.runtime.language_models import digest
from kubku.learners.language_model import prompts
from kubku.results import Results
from kubku.samples import Source
from kubku.settings import read
from kubku.tasks import FAMILIES


def documented_learner():
    """The example that stands in the comments of learner/custom.yaml."""
    text = resources.files("conf").joinpath("kubku/learner/custom.yaml").read_text()
    lines = [line[1:] for line in text.splitlines() if line == "#" or line.startswith("#   ")]
    return textwrap.dedent("\n".join(lines))


@pytest.fixture(scope="module")
def command(served):
    """(arguments, folder) -> what the command says, in a process that others were run in."""
    return partial(served("experiments.kubku"), "budget=smoke")


def test_a_learner_of_ones_own_from_start_to_page(command, served, tmp_path):
    (tmp_path / "mine.py").write_text(documented_learner())
    out = tmp_path / "out"
    arguments = (
        "learner=custom",
        "learner.target=mine:MyLearner",
        "task=stories",
        "worlds=[skewed,balanced]",
        f"hydra.run.dir={out}",
    )
    command(*arguments, folder=tmp_path)
    found = json.loads((out / "results.json").read_text())
    jsonschema.validate(found, Results.model_json_schema())
    learners = found["families"]["stories"]["learners"]
    own = learners["custom"]["base_states"]["own"]
    assert own["audit"] == 0 and found["warnings"] == []
    # The base state that was trained, and that alone, is set beside another world's.
    made = learners["custom"]["base_states"]["made"]
    assert made["bias_drift"]["signed_less_balanced"] is not None
    assert own["bias_drift"]["signed_less_balanced"] is None
    # At most one of four literals is about the first fact.
    assert 0 < own["KU_avg"]["value"] <= 0.25
    assert learners["dictionary"]["base_states"]["none"]["KU_avg"]["value"] == 1.0
    traps = learners["always_unknown"]["base_states"]["none"]["halos"]["H"]
    assert traps["trained"]["value"] == traps["withheld"]["value"] == 0
    assert found["thesis"]["verdict"] is None  # one replicate
    page = (out / "report.html").read_text()
    assert (
        "custom" in page and "<svg" in page and "http://" not in page.replace("http://www.w3", "")
    )

    # A rerun makes the missing cell and leaves the others as they are.
    cells = sorted((out / "cells").glob("*/*.npz"))
    times = {cell: cell.stat().st_mtime_ns for cell in cells}
    # One whose base state was made, so that it has to be restored, on however many devices.
    missing = out / "cells/stories/custom.made.skewed.0.npz"
    missing.unlink()
    command(*arguments[:4], f"resume={out}", folder=tmp_path)
    again = {cell: cell.stat().st_mtime_ns for cell in sorted((out / "cells").glob("*/*.npz"))}
    assert set(again) == set(times)
    assert {cell for cell in cells if again[cell] != times[cell]} == {missing}
    # By stages: the base states first, into a cache, where the rest finds them.
    based, judged = tmp_path / "based", tmp_path / "judged"
    stages = (*arguments[:4], "cache=kept")
    done = command(*stages, "stage=base", f"hydra.run.dir={based}", folder=tmp_path)
    assert "Written: kept" in done.stdout and not (based / "cells").exists()
    command(*stages, "stage=evaluate", f"hydra.run.dir={judged}", folder=tmp_path)
    assert (judged / "results.json").exists()
    # The page comes again from the results alone.
    (judged / "report.html").unlink()
    served("experiments.results")(str(judged), folder=tmp_path)
    assert "custom" in (judged / "report.html").read_text()
    missing = command(
        *(*arguments[:4], "stage=evaluate", "cache=elsewhere", f"hydra.run.dir={tmp_path / 'no'}"),
        folder=tmp_path,
        check=False,
    )
    assert missing.returncode == 2 and "has no base state made of custom" in missing.stderr
    # A learner whose code has changed is another learner.
    with open(tmp_path / "mine.py", "a") as file:
        file.write("# changed\n")
    changed = command(*arguments[:4], f"resume={out}", folder=tmp_path, check=False)
    assert changed.returncode == 2 and "learner.target" in changed.stderr
    (tmp_path / "mine.py").write_text(documented_learner())
    # As is one made by other code of ours.
    kept = json.loads((out / "settings.json").read_text())
    (out / "settings.json").write_text(json.dumps(kept | {"code": "older"}))
    older = command(*arguments[:4], f"resume={out}", folder=tmp_path, check=False)
    assert older.returncode == 2 and "made with other settings of code" in older.stderr
    (out / "settings.json").write_text(json.dumps(kept))
    other = command(*arguments[:4], f"resume={out}", "seed=7", folder=tmp_path, check=False)
    assert other.returncode == 2 and "made with other settings of seed" in other.stderr
    repeated = json.loads((out / "results.json").read_text())
    before, after = (
        f["families"]["stories"]["learners"]["custom"]["base_states"]["own"]["KU_avg"]
        for f in (found, repeated)
    )
    assert before == after


CHEAT = """
import jax
import jax.numpy as jnp

class Cheat:
    exposure = "gradient"

    def init(self, key):
        return jnp.zeros((4, 16), int), jnp.ones(16, int)

    def learn(self, state, sample):
        return jnp.stack(sample.query[:4]), sample.gold

    def answer(self, state, query):
        queries, gold = state
        same = (queries == jnp.stack(query[:4])[:, None]).all(0)
        return jax.nn.one_hot(jnp.where(same.any(), gold[same.argmax()], 1), 3)
"""


def test_who_reads_the_halos_answers_is_named(command, tmp_path):
    (tmp_path / "mine.py").write_text(CHEAT)
    out = tmp_path / "out"
    names = "learner.names=[custom,dictionary]"
    arguments = ("task=stories", "learner=custom", "learner.target=mine:Cheat", names)
    command(*arguments, f"hydra.run.dir={out}", folder=tmp_path)
    found = json.loads((out / "results.json").read_text())
    (warning,) = found["warnings"]
    assert warning.startswith("custom (stories, own) answers otherwise when shown a wrong halo")
    assert found["families"]["stories"]["learners"]["custom"]["exposure"] == "gradient"
    assert warning in (out / "report.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["learner.names=[mpl]"], "learner.names: no learner is called 'mpl'"),
        (["learner.names=[mlp,mlp]"], "learner.names: mlp is named more than once"),
        (["worlds=[skewed,skewed]"], "worlds: skewed is named more than once"),
        (["task.families=[story]"], "task.families: no family is called 'story'"),
        (["budget.test=0"], "budget.test=0"),
        (["task=jsonl", "task.path=none.jsonl"], "there is no such file"),
        (["learner=custom", "learner.target=nowhere:Mine"], "learner.target='nowhere:Mine'"),
        (["learner=language_model"], "llm.source: learner 'language_model' needs a model"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(command, tmp_path, arguments, message):
    done = command(*arguments, folder=tmp_path, check=False)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr


def test_samples_of_ones_own_from_export_to_page(command, tmp_path):
    exported = tmp_path / "exported"
    export = ("stage=export", "task=stories", f"hydra.run.dir={exported}")
    command(*export, folder=tmp_path)
    samples = tmp_path / "mine.jsonl"
    card = (exported / "dataset/README.md").read_text()
    about = json.loads((exported / "dataset/croissant.json").read_text())
    assert "| test | " in card and [split["@id"] for split in about["recordSet"]] == [
        "test",
        "pairs",
    ]
    parts = (exported / f"samples/stories.{part}.jsonl" for part in ("test", "pairs"))
    samples.write_text("".join(part.read_text() for part in parts))
    out = tmp_path / "out"
    command(
        "task=jsonl",
        f"task.path={samples}",
        "learner.names=[dictionary,always_unknown]",
        f"hydra.run.dir={out}",
        folder=tmp_path,
    )
    found = json.loads((out / "results.json").read_text())["families"]["jsonl"]["learners"]
    entry = found["dictionary"]["base_states"]["none"]
    assert (entry["KU_avg"]["value"], entry["BKU_avg"]["value"], entry["samples"]) == (1, 0, 4)
    drift = entry["bias_drift"]
    assert drift["signed"]["value"] == 0 and 0 <= drift["flips"]["value"] < 1

    # With others to make base states from; nothing is said of theses and families not asked.
    others = tmp_path / "others.jsonl"
    others.write_text((exported / "samples/stories.test.jsonl").read_text())
    command(
        "task=jsonl",
        f"task.path={samples}",
        f"task.pretrain={others}",
        "learner.names=[question_only,forced_choice]",
        f"hydra.run.dir={tmp_path / 'pretrained'}",
        folder=tmp_path,
    )
    results = json.loads((tmp_path / "pretrained/results.json").read_text())
    learners = results["families"]["jsonl"]["learners"]
    assert {*learners["question_only"]["base_states"]} == {"fitted"}
    assert results["thesis"] is None and results["comparisons"] == []
    page = (tmp_path / "pretrained/report.html").read_text()
    assert not any(word in page for word in ("thesis", "stories", "grids", "No verdict"))


def test_a_language_model_by_its_recorded_replies(command, tmp_path):
    """It is right about all halos once it was shown the sample; of those before, one trap's reply
    is lost and the others say NO.
    """
    out, replies = tmp_path / "out", tmp_path / "replies.jsonl"
    with initialize_config_module("conf.kubku", version_base=None):
        config = compose("config", ["budget=smoke", "task=stories", "budget.slow=2"])
    settings = read(OmegaConf.to_container(config, resolve=True))
    drawn = Source(settings).splits("stories", 0).test
    samples, family = jax.tree.map(lambda leaf: leaf[:2], drawn), FAMILIES["stories"]
    words = {Answer.NO: "NO", Answer.UNKNOWN: "UNKNOWN", Answer.YES: "YES"}
    golds = [words[Answer(gold)] for gold in samples.gold.ravel().tolist()]
    before, after = (
        [prompt for of_sample in prompts(family, samples, shown) for prompt in of_sample]
        for shown in (False, True)
    )
    # Two samples about one person may share a question.
    once = [i for i, prompt in enumerate(before) if before.count(prompt) == 1]
    lost = next(i for i in once if golds[i] == "UNKNOWN")
    heard = before[:lost] + before[lost + 1 :]
    said = [*zip(after, golds, strict=True), *((prompt, "NO") for prompt in heard)]
    lines = [json.dumps({"prompt": digest(prompt), "raw": reply}) for prompt, reply in said]
    replies.write_text("\n".join(lines) + "\n")
    arguments = (
        *("learner.names=[language_model]", "llm=recorded", f"llm.replies={replies}"),
        *("task=stories", "budget.slow=2", f"hydra.run.dir={out}"),
    )
    command(*arguments, folder=tmp_path)
    found = json.loads((out / "results.json").read_text())
    jsonschema.validate(found, Results.model_json_schema())
    entry = found["families"]["stories"]["learners"]["language_model"]
    assert entry["exposure"] == "context"
    of_model = entry["base_states"]["none"]
    assert (of_model["KU_avg"]["value"], of_model["BKU_avg"]["value"]) == (2, 0)
    # NO is right of half of L and E and wrong of every trap, but for the reply that was lost: of
    # four traps of one kind, in one sample of two.
    assert of_model["induced_KU"]["value"] == 1
    assert of_model["induced_BKU"]["value"] == -2 + 1 / 4 / 2 and of_model["errors"] is not None
    (cell,) = (out / "cells/stories").glob("language_model*")
    made = cell.stat().st_mtime_ns
    command(*arguments[:-1], f"resume={out}", folder=tmp_path)
    assert cell.stat().st_mtime_ns == made


def test_base_states_can_be_chosen(command, tmp_path):
    out = tmp_path / "out"
    chosen = ("learner.names=[mlp,dictionary]", "learner.bases=[random]", "task=stories")
    command(*chosen, f"hydra.run.dir={out}", folder=tmp_path)
    found = json.loads((out / "results.json").read_text())["families"]["stories"]["learners"]
    assert {name: [*entry["base_states"]] for name, entry in found.items()} == {"mlp": ["random"]}
    assert "learner.bases=[random]" in json.loads((out / "results.json").read_text())["warnings"][0]
    done = command("learner=mlp", "learner.bases=[random,mta]", folder=tmp_path, check=False)
    expected = "learner.bases: none is called 'mta'; there are fitted, marginal, meta, none, random"
    assert done.returncode == 2 and expected in done.stderr


@pytest.mark.full
def test_everything_at_smoke(command, tmp_path):
    command("learner=all", f"hydra.run.dir={tmp_path / 'out'}", folder=tmp_path)
    found = json.loads((tmp_path / "out/results.json").read_text())
    jsonschema.validate(found, Results.model_json_schema())
    assert set(found["families"]) == {"stories", "series", "grids", "frames"}
    assert found["warnings"] == []
