"""The server for agents, asked by the client of the official SDK."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, Tool

from dsmigrate.cli import tools
from dsmigrate.schemas_location import schema_json

CONFIG = {"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_com": True}}
SCRIPT = """import torch
from torch.nn.parallel import DistributedDataParallel
torch.distributed.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(2, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(4):
    loss = model(torch.ones(4, 2)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
CALLS: dict[str, dict[str, Any]] = {
    "check": {"paths": ["ds_config.json"], "min_severity": "hint", "target_version": "0.16.9"},
    "explain": {"words": ["zero_optimization.stage"], "lang": "zh-CN"},
    "diff": {"sides": ["ds_config.json", "new.json"], "all": True},
    "memory": {"params": "7b", "gpu": "a100-80gb", "gpus": 8},
    "recommend": {"params": "7b", "gpu": "a100-80gb", "gpus": 8},
    "convert": {"source": "ds_config.json", "to": "accelerate", "set": ["gradient_clipping=1.0"]},
    "migrate": {"paths": ["train.py"], "zero_stage": 1},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ds_config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (tmp_path / "new.json").write_text(json.dumps(CONFIG | {"gradient_clipping": 0.5}), encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def ask(*calls: tuple[str, dict[str, Any]]) -> tuple[list[Tool], list[CallToolResult]]:
    """Return the tools of a server that is started for it, and what they answer."""

    async def asked() -> tuple[list[Tool], list[CallToolResult]]:
        server = StdioServerParameters(command=sys.executable, args=["-m", "dsmigrate", "mcp"], env=dict(os.environ))
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            listed = (await session.list_tools()).tools
            return listed, [await session.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(asked())


def test_every_tool_answers_in_the_json_of_its_command_and_writes_nothing(project: Path) -> None:
    before = {path.name: path.read_bytes() for path in project.iterdir()}
    listed, answers = ask(*((name, {**arguments, "folder": str(project)}) for name, arguments in CALLS.items()))
    assert [tool.name for tool in listed] == list(CALLS) == list(tools.NAMES)
    for tool, answer in zip(listed, answers, strict=True):
        assert not answer.is_error, answer.content
        jsonschema.validate(answer.structured_content, schema_json(f"output/{tool.name}.schema.json"))
        assert json.loads(answer.content[0].text) == answer.structured_content  # type: ignore[union-attr]
        assert tool.description
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
    assert {path.name: path.read_bytes() for path in project.iterdir()} == before
    found = {name: answer.structured_content for name, answer in zip(CALLS, answers, strict=True)}
    assert "overlap_comm" in json.dumps(found["check"])
    assert "gradient_clipping" in json.dumps(found["diff"])
    assert "deepspeed.initialize" in json.dumps(found["migrate"])


@pytest.mark.parametrize("name", tools.NAMES)
def test_the_arguments_are_those_of_the_command_without_what_writes(name: str) -> None:
    schema = tools.input_schema(name)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate({**CALLS[name], "folder": "/"}, schema)
    assert not {"fix", "force", "format", "output", "plot", "write"} & schema["properties"].keys()
    assert all(part.get("type") or part.get("enum") for part in schema["properties"].values())


def test_what_goes_wrong_is_said(project: Path) -> None:
    folder = {"folder": str(project)}
    _, answers = ask(
        ("check", {"paths": ["missing.json"], **folder}),
        ("check", {"paths": ["--fix"], **folder}),
        ("recommend", {"gpus": "8"}),
        ("recommend", {"fix": True}),
        ("convert", {"to": "accelerate"}),
        ("memory", {"params": "7b", "folder": str(project / "nowhere")}),
        ("delete", {}),
    )
    assert all(answer.is_error and answer.structured_content is None for answer in answers)
    said = [answer.content[0].text for answer in answers]  # type: ignore[union-attr]
    parts = [
        "missing.json: no such file",
        "--fix: no such file",
        "gpus: '8' is not of type 'integer'",
        "'fix' was unexpected",
        "'source' is a required property",
        "nowhere: no such folder",
        "there is no tool delete",
    ]
    assert all(part in text for part, text in zip(parts, said, strict=True)), said


def test_a_call_that_is_cancelled_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, started = tmp_path / "python", tmp_path / "started"
    program.write_text(f"#!/bin/sh\necho $$ > {started}.part\nmv {started}.part {started}\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(tools.sys, "executable", str(program))

    async def cancelled() -> None:
        task = asyncio.create_task(tools.call("explain", {"words": ["stage"]}))
        while not started.exists():  # noqa: ASYNC110 - another process says so
            await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)


def test_without_the_package_it_says_how_to_get_it() -> None:
    code = "import sys; sys.modules['mcp_types'] = None; from dsmigrate.cli.app import run; sys.exit(run(['mcp']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'pip install "dsmigrate[mcp]"' in done.stderr
