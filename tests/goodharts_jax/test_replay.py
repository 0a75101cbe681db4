"""Recordings of policies: they obey the rules of the world, and start alike."""

import numpy as np
import pytest

from goodharts_jax import replay as replays
from goodharts_jax import world


def test_a_recording_obeys_the_rules_of_the_world(replay):
    size, moves = replay["size"], replay["moves"]
    gain = {0: 0.0, 1: 1.0, 2: -2.0}
    for mode in replay["modes"].values():
        codes = np.zeros(size * size, int)
        codes[mode["food"]], codes[mode["poison"]] = 1, 2
        assert (codes == 1).sum() == 120 and (codes == 2).sum() == 90
        energy = replay["start_energy"]
        for t in range(replay["steps"]):
            dx, dy = moves[mode["action"][t]]
            x, y = (mode["x"][t] + dx) % size, (mode["y"][t] + dy) % size
            assert codes[mode["y"][t] * size + mode["x"][t]] == 0
            assert mode["eaten"][t] == codes[y * size + x]
            codes[y * size + x] = 0
            if mode["eaten"][t]:
                assert codes[mode["regrown"][t]] == 0 and mode["regrown"][t] != y * size + x
                codes[mode["regrown"][t]] = mode["eaten"][t]
            else:
                assert mode["regrown"][t] == -1
            energy = round(energy - 0.1 + gain[mode["eaten"][t]], 4)
            assert mode["energy"][t] == energy
            assert mode["died"][t] == (energy <= 0)
            if mode["died"][t]:
                energy = replay["start_energy"]
            elif t + 1 < replay["steps"]:
                assert (mode["x"][t + 1], mode["y"][t + 1]) == (x, y)
        assert (codes == 1).sum() == 120 and (codes == 2).sum() == 90


def test_recordings_of_one_key_start_alike_and_modes_part_later(replay):
    starts = {(m["x"][0], m["y"][0], *m["food"], *m["poison"]) for m in replay["modes"].values()}
    assert len(starts) == 1
    assert len({tuple(mode["action"]) for mode in replay["modes"].values()}) == 3


def test_probabilities_are_those_of_the_actions_taken(replay):
    for mode in replay["modes"].values():
        chances = np.array(mode["probabilities"]) / 1000
        np.testing.assert_allclose(chances.sum(axis=1), 1, atol=0.005)
        expected, taken = chances.argmax(axis=1), np.array(mode["action"])
        # The likeliest action is taken as often as its probability says.
        rate = chances.max(axis=1).mean()
        assert abs((expected == taken).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / len(taken))
    assert replay["modes"]["random_walk"]["value"] is None
    assert len(replay["modes"]["proxy"]["value"]) == replay["steps"]


def test_replays_of_unequal_length_are_refused():
    made = {
        f"of {steps}": (None, replays.Recording(None, None, np.zeros(steps), None, None, None))
        for steps in (2, 3)
    }
    with pytest.raises(ValueError, match=r"one length, not \[2, 3\] steps"):
        replays.make_replay(world.make_world(), made)
