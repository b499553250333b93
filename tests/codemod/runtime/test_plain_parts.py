"""The parts that need neither torch nor DeepSpeed, run out of an assembled file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dsmigrate.codemod.runtime.assemble import assemble
from dsmigrate.codemod.runtime.sources import sources

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")


def part(name: str) -> Any:
    found: dict[str, Any] = {}
    exec(assemble([name], sources(), "0").text, found)  # noqa: S102 - a file of ours
    return found[name]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    values: dict[str, str] = {}
    monkeypatch.setattr(os, "environ", values)
    return values


def ranks(environment: dict[str, str]) -> list[str]:
    return [environment[name] for name in VARIABLES]


def test_given_numbers_win_over_the_environment(environment: dict[str, str]) -> None:
    environment |= {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "head", "MASTER_PORT": "7"}  # a node's number
    part("set_rank_environment")(5, 8, 1)
    assert ranks(environment) == ["5", "8", "1", "head", "7"]


def test_rank_0_is_a_given_number(environment: dict[str, str]) -> None:
    environment |= {"SLURM_PROCID": "3", "RANK": "3", "WORLD_SIZE": "4"}
    part("set_rank_environment")(rank=0, local_rank=0)
    assert ranks(environment) == ["0", "4", "0", "127.0.0.1", "29500"]


@pytest.mark.parametrize(
    "names",
    [
        ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"),
    ],
)
def test_what_is_not_given_is_the_managers(environment: dict[str, str], names: tuple[str, str, str]) -> None:
    environment |= dict(zip(names, "582", strict=True))
    part("set_rank_environment")(init_method="tcp://node7:1234")
    assert ranks(environment) == ["5", "8", "2", "node7", "1234"]


def test_a_launcher_comes_before_the_manager(environment: dict[str, str]) -> None:
    environment |= {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}  # one task a node, torchrun in it
    environment |= {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1", "MASTER_ADDR": "head", "MASTER_PORT": "7"}
    part("set_rank_environment")(init_method="env://")
    assert ranks(environment) == ["9", "16", "1", "head", "7"]


def test_a_process_alone_is_rank_0_of_1(environment: dict[str, str]) -> None:
    part("set_rank_environment")()
    assert ranks(environment) == ["0", "1", "0", "127.0.0.1", "29500"]


@pytest.mark.parametrize(("given", "missing"), [({"rank": 1}, "LOCAL_RANK"), ({"local_rank": 1}, "RANK")])
@pytest.mark.usefixtures("environment")
def test_one_of_several_has_to_know_its_number(given: dict[str, int], missing: str) -> None:
    with pytest.raises(RuntimeError, match=f"one of several processes, and its {missing} is not known"):
        part("set_rank_environment")(world_size=2, **given)


def load(tmp_path: Path, **values: Any) -> Any:
    (tmp_path / "ds_config.json").write_text(
        json.dumps({"gradient_clipping": 1.0, "torch_autocast": {"enabled": True, "dtype": "bfloat16"}})
    )
    return part("load_config")(str(tmp_path / "train.py"), **values)


def test_a_config_is_read_beside_the_script(tmp_path: Path) -> None:
    assert load(tmp_path) == {"gradient_clipping": 1.0, "torch_autocast": {"enabled": True, "dtype": "bfloat16"}}


def test_values_are_put_in_key_by_key(tmp_path: Path) -> None:
    found = load(tmp_path, torch_autocast={"enabled": False}, zero_optimization={"stage": 2}, steps_per_print=10)
    assert found == {
        "gradient_clipping": 1.0,
        "torch_autocast": {"enabled": False, "dtype": "bfloat16"},
        "zero_optimization": {"stage": 2},
        "steps_per_print": 10,
    }


@pytest.mark.parametrize(("given", "clipping"), [(None, 0.0), (0, 0.0), (0.5, 0.5)])
def test_no_clipping_is_zero(tmp_path: Path, given: float | None, clipping: float) -> None:
    assert load(tmp_path, gradient_clipping=given)["gradient_clipping"] == clipping


def test_another_name(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    assert part("load_config")(str(tmp_path / "train.py"), "other.json", steps_per_print=1) == {"steps_per_print": 1}
