"""What figures show, read back from their axes."""

from itertools import pairwise

import numpy as np
import pytest

from goodharts_jax import figures, world
from goodharts_jax.results import SurvivalCurve

FULL = {
    "performance",
    "survival",
    "consumption",
    "learning",
    "efficiency_distribution",
    "causes_of_death",
    "goodhart_curves",
    "phase_diagram",
    "phase_pressure",
    "reward_correlation",
    "directions",
}


def one_run(change, results, name, **parts):
    """A mode's first run, changed, as the mode's only one."""
    mode = results.modes[name]
    return change(mode, runs=(change(mode.runs[0], **parts),))


def test_every_figure_is_drawn_where_the_results_have_its_data(results, smaller):
    assert set(figures.draw(results)) == FULL
    assert set(figures.draw(smaller(results, "random_walk"))) == {
        "performance",
        "consumption",
        "survival",
        "efficiency_distribution",
        "causes_of_death",
    }


def test_survival_curves_hold_each_step_until_the_next_death(results, smaller, change):
    # Of four lives one ends at 2, two at 5; the last was followed to 6.
    curve = SurvivalCurve(ages=(0, 2, 5, 6), survival=(1.0, 0.75, 0.25, 0.25))
    one = smaller(results, "proxy")
    one = change(
        one,
        manifest=change(one.manifest, survival_horizon=8),
        modes={"proxy": one_run(change, one, "proxy", survival=curve)},
    )
    (line,) = figures.survival(one).axes[0].lines
    drawn = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert [drawn[age] for age in (1, 2, 3, 4, 5, 6)] == [1.0, 0.75, 0.75, 0.75, 0.25, 0.25]
    assert np.isnan(drawn[7]) and np.isnan(drawn[8])


def test_the_phase_diagram_puts_each_cell_in_its_place(results):
    figure = figures.phase_diagram(results)
    axes = figure.axes[0]
    cells = [cell for cell in results.phase_diagram if cell.steps == 1_000_000]
    rewards = sorted({cell.poison_reward for cell in cells})
    distances = sorted({cell.distance for cell in cells})
    (mesh,) = axes.collections
    values = mesh.get_array().reshape(len(distances), len(rewards))
    for cell in cells:
        place = distances.index(cell.distance), rewards.index(cell.poison_reward)
        assert values[place] == cell.overall_efficiency.value
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()][:2] == ["−2", "−1"]


def test_learning_curves_leave_out_updates_in_which_nothing_was_eaten(results, smaller, change):
    one = smaller(results, "proxy")
    training = one.modes["proxy"].runs[0].training
    food, poison = (0.0, 0.3, *training.history.food[2:]), (0.0, 0.1, *training.history.poison[2:])
    history = change(training.history, food=food, poison=poison)
    changed = one_run(change, one, "proxy", training=change(training, history=history))
    line = figures.learning(change(one, modes={"proxy": changed})).axes[0].lines[0]
    assert np.isnan(line.get_ydata()[0]) and line.get_ydata()[1] == pytest.approx(0.75)


def test_directions_point_north_where_the_world_does(results, change):
    only_north = tuple((float(move == (0, -1)),) * 5 for move in world.MOVES)
    checks = results.verification["proxy"]
    moved = change(checks, directions=change(checks.directions, approach_food=only_north))
    line = figures.directions(change(results, verification={"proxy": moved})).axes[0].lines[0]
    angles, heights = np.array(line.get_data())
    assert angles[heights == 1.0] == pytest.approx([np.pi / 2])
    assert all(0 < later - earlier < 1 for earlier, later in pairwise(angles[:-1]))
