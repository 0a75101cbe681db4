import copy

import pytest

import evidence
from evidence.runtime import files
from experiments import results as command
from goodharts_jax.gather import gather


def part(results, modes, seeds, **settings):
    """What an experiment of these modes and seeds alone would have written."""
    cut = copy.deepcopy({key: results[key] for key in ("manifest", "modes", "warnings")})
    configuration = cut["manifest"]["configuration"]
    configuration["modes"] = {name: configuration["modes"][name] for name in modes}
    configuration |= {"seed": seeds[0], **settings}
    cut["manifest"]["seeds"] = list(seeds)
    kept = {name: mode for name, mode in cut["modes"].items() if mode["scripted"] or name in modes}
    for mode in kept.values():
        mode["runs"] = [run for run in mode["runs"] if run["seed"] in seeds]
    return cut | {"modes": kept}


@pytest.fixture
def sweep(results):
    """Jobs of `--multirun mode=ground_truth,proxy seed=42,43,44`."""
    return {
        f"mode={mode},seed={seed}": part(results, [mode], [seed])
        for mode in ("ground_truth", "proxy")
        for seed in (42, 43, 44)
    }


def test_a_sweep_joins_into_the_experiment_it_was_cut_from(results, sweep):
    joined = gather(sweep)
    assert joined["manifest"]["seeds"] == [42, 43, 44]
    assert set(joined["manifest"]["configuration"]["modes"]) == {"ground_truth", "proxy"}
    assert list(joined["modes"])[:2] == ["ground_truth", "proxy"]
    for name, mode in joined["modes"].items():
        assert mode["runs"] == results["modes"][name]["runs"]
        assert mode["intervals"] == results["modes"][name]["intervals"]
        assert mode["other_intervals"] == results["modes"][name]["other_intervals"]
        for key in ("total_deaths", "total_steps"):
            assert mode["aggregates"][key] == results["modes"][name]["aggregates"][key]
    assert joined["thesis"] == results["thesis"]
    assert joined["ratios"] == results["ratios"]


def test_a_run_found_twice_counts_once(sweep):
    twice = sweep | {"again": sweep["mode=proxy,seed=42"]}
    assert gather(twice)["modes"] == gather(sweep)["modes"]


def test_different_conditions_are_not_joined(results, sweep):
    sweep["other"] = part(results, ["proxy"], [42], world={"size": 50})
    with pytest.raises(ValueError, match=r"not made under the same conditions.*world\.size"):
        gather(sweep)


def test_a_mode_that_means_two_things_is_not_joined(results, sweep):
    other = part(results, ["proxy"], [42])
    other["manifest"]["configuration"]["modes"]["proxy"] = {"mortal": True}
    with pytest.raises(ValueError, match=r"other: modes\.proxy differs"):
        gather(sweep | {"other": other})


def written(folder, results):
    files.write_json(folder / "results.json", results)
    return str(folder)


def test_one_folder_is_shown_and_drawn_again(results, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    bare = {key: results[key] for key in ("manifest", "modes", "ratios", "thesis")}
    bare["modes"] = {name: results["modes"][name] for name in ("proxy", "random_walk")}
    command.main([written(tmp_path, bare)])
    shown = capsys.readouterr().out
    measured = results["modes"]["proxy"]["intervals"]["deaths_per_1k_steps"]
    proxy = shown[shown.index("modes.proxy") :]
    line = next(row for row in proxy.splitlines() if "deaths_per_1k_steps" in row)
    assert f"{measured['value']:.0f} [{measured['low']:.0f}, {measured['high']:.0f}]" in line
    assert "3 × run" in line and "supported: " in shown
    assert (tmp_path / "report.html").exists() and (tmp_path / "figures" / "survival.svg").exists()


def test_two_folders_stand_side_by_side(results, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    small = written(tmp_path / "small", part(results, ["proxy"], [42], world={"size": 50}))
    large = written(tmp_path / "large", part(results, ["proxy"], [42], world={"size": 100}))
    command.main([small, large])
    lines = capsys.readouterr().out.splitlines()
    (size,) = [line for line in lines if "world.size" in line]
    assert size.split()[1:-1] == ["world.size", "│", "50", "│", "100"]
    assert not any("mortal" in line for line in lines)  # the same in both
    assert any("modes.proxy" in line for line in lines)
    own = [line for line in lines if "own_return_per_1k_steps" in line]
    assert len(own) == 4 and all(line.count("│") == 4 for line in own)  # proxy and three scripts


def test_a_multirun_is_joined_in_its_folder(sweep, tmp_path, capsys):
    for name, job in sweep.items():
        written(tmp_path / name, job)
    command.main([str(tmp_path)])
    assert "6 jobs joined" in capsys.readouterr().out
    assert len(command._jobs(tmp_path)) == 6  # the joined result is not a job
    joined = evidence.load(tmp_path)
    assert joined["manifest"]["gathered"] == sorted(sweep)
    assert joined["thesis"]["verdict"] == "supported"


def test_a_folder_without_results_is_one_clear_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path)])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "there is no results.json in it or below it" in captured.err
