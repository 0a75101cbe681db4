"""Looking again at what Goodhart experiments left behind."""

import pytest

import evidence
from evidence.runtime import files, sweeps
from experiments import results as command


@pytest.fixture
def sweep(results, part):
    """Jobs of `--multirun mode=ground_truth,proxy seed=42,43,44`."""
    return {
        f"mode={mode},seed={seed}": part(results, [mode], [seed])
        for mode in ("ground_truth", "proxy")
        for seed in (42, 43, 44)
    }


def written(folder, results):
    files.write_json(folder / "results.json", results)
    return str(folder)


def test_one_folder_is_shown_and_drawn_again(results, change, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    bare = change(
        results,
        modes={name: results.modes[name] for name in ("proxy", "random_walk")},
        comparisons=(),
        goodhart_curves={},
        phase_diagram=(),
        verification={},
        logrank=(),
    )
    command.main([written(tmp_path, bare), "--all"])
    shown = capsys.readouterr().out
    measured = results.modes["proxy"].intervals.deaths_per_1k_steps
    proxy = shown[shown.index("modes.proxy") :]
    line = next(row for row in proxy.splitlines() if "deaths_per_1k_steps" in row)
    assert f"{measured.value:.0f} [{measured.low:.0f}, {measured.high:.0f}]" in line
    assert "3 × run" in line and "Supported: " in shown
    assert (tmp_path / "report.html").exists() and (tmp_path / "figures" / "survival.svg").exists()


def test_two_folders_stand_side_by_side(results, part, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    small = written(tmp_path / "small", part(results, ["proxy"], [42], world={"size": 50}))
    large = written(tmp_path / "large", part(results, ["proxy"], [42], world={"size": 100}))
    command.main([small, large, "--all"])
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
    assert len(sweeps.jobs(tmp_path).done) == 6  # the joined result is not a job
    joined = evidence.load(tmp_path)
    assert joined.manifest.joined == tuple(sorted(sweep))
    assert joined.thesis.verdict == "supported"


def test_a_folder_without_results_is_one_clear_line(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        command.main([str(tmp_path)])
    assert ended.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "there is no results.json in it or below it" in captured.err
