"""Other people's trainers learn on our world: the how-to's programs, in environments of their own.

PureJaxRL is in no package index: `PUREJAXRL=FOLDER` names a checkout of it.
"""

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "trainers.md").read_text("utf-8")
BLOCKS = {
    section.partition("\n")[0]: block
    for section in PAGE.split("\n## ")[1:]
    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL)
}
# Imported by PureJaxRL's wrappers, and not used by those that its PPO needs.
STUB = """\
import os, sys
from unittest.mock import MagicMock
names = ("navix", "brax", "brax.envs", "brax.envs.wrappers", "brax.envs.wrappers.training")
sys.modules.update({name: MagicMock() for name in names})
sys.path[:0] = [os.environ["PUREJAXRL"], os.path.join(os.environ["PUREJAXRL"], "purejaxrl")]
"""
# Before the program, and after it: what was never trained.
TRAINERS = {
    "rejax": (
        ("rejax==0.1.3", "gymnax==1.0.1"),
        "",
        "untrained = algo.make_act(algo.init_state(jax.random.key(1)))",
    ),
    "PureJaxRL": (
        ("gymnax==1.0.1",),
        STUB,
        """\
fresh = ppo.ActorCritic(8).init(jax.random.key(1), jax.numpy.zeros(98))
untrained = lambda seen, key: trained.apply_fn(fresh, seen.reshape(-1))[0].sample(seed=key)
""",
    ),
    "Stable-Baselines3": (
        ("torch==2.13.0", "stable-baselines3==2.9.2"),
        "",
        """\
import jax, numpy as np
untrained = PPO("MlpPolicy", envs)
seen = envs.reset()
told = model.policy.get_distribution(model.policy.obs_to_tensor(seen)[0]).distribution.logits
act = gj.interop.as_policy(model, "ground_truth").act
read = jax.nn.log_softmax(jax.vmap(act, (0, None))(seen, None))
np.testing.assert_allclose(read, told.detach().numpy(), atol=1e-4)
""",
    ),
}
JUDGED = """
import json
control = gj.judge(untrained, "world=small", mode="ground_truth", name="untrained")
rows = {**results.modes, **control.modes}
print(json.dumps({name: [row.intervals.survival_restricted_mean.value,
    row.intervals.overall_efficiency.value] for name, row in rows.items()}))
"""


def environment(packages, folder):
    """The Python of an environment with these packages, all others of this one behind them."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (place,) = folder.glob("lib/python*/site-packages")
    (place / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "bin" / "python"
    for package in packages:  # one after the other: what is there is not looked for again
        pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        subprocess.run([*pip, package], check=True)
    return python


@pytest.mark.parametrize("name", TRAINERS)
def test_a_trainer_learns_what_the_untrained_do_not_know(name, tmp_path):
    packages, before, after = TRAINERS[name]
    if name == "PureJaxRL" and "PUREJAXRL" not in os.environ:
        pytest.skip("PUREJAXRL=FOLDER names no checkout")
    python = environment(packages, tmp_path / "environment")
    done = subprocess.run(
        [python, "-c", before + BLOCKS[name] + after + JUDGED],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    row = next(name for name in rows if name not in ("untrained", "random_walk"))
    (survival, efficiency), (control, chance) = rows[row], rows["untrained"]
    assert abs(control / rows["random_walk"][0] - 1) < 0.3 and abs(chance - 0.5) < 0.1
    assert survival > 5 * control and efficiency > 0.9
    (page,) = tmp_path.glob("outputs/*/report.html")
    assert row in page.read_text("utf-8")


@pytest.mark.parametrize("name", sorted(set(BLOCKS) - set(TRAINERS)))
def test_a_program_of_the_page_runs(name, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", BLOCKS[name]],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout, done.stderr
