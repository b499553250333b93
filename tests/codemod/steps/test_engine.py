"""The ``deepspeed.initialize`` call and what stands around it."""

from __future__ import annotations

import ast
import re

import pytest

from tests.codemod.checks import convert, migrate, script

PATH = 'os.path.join(os.path.dirname(os.path.abspath(__file__)), "ds_config.json")'
FIXED = "dataset = Digits()\ntrain_loader = DataLoader(dataset, batch_size=64)"


def test_a_config_that_the_script_does_not_touch_is_given_by_its_path() -> None:
    assert f"    config={PATH},\n" in convert(data=FIXED).section("optimizer")


def test_a_config_that_follows_options_is_read_first() -> None:
    code = convert().section("optimizer")
    assert f"with open({PATH}) as ds_config_file:\n    ds_config = json.load(ds_config_file)\n" in code
    assert "model = deepspeed.initialize(model=model, optimizer=optimizer, config=ds_config)[0]\n" in code


def test_the_config_has_the_name_that_was_asked_for() -> None:
    migrated = convert(data=FIXED, to={"config_name": "zero2.json"})
    assert '"zero2.json")' in migrated.code
    assert "ds_config.json" not in migrated.code


@pytest.mark.parametrize("name", ['a"b.json', "a\\n.json", "a\n.json", "零.json", "\udcff.json", "{x}.json"])
def test_the_config_has_any_name(name: str) -> None:
    written = re.search(r"__file__\)\), (.*)\),\n", convert(data=FIXED, to={"config_name": name}).code)
    assert written
    assert ast.literal_eval(written[1]) == name


def test_needed_modules_are_imported_once() -> None:
    code = convert().code
    assert [line for line in code.splitlines() if line == "import deepspeed"] == ["import deepspeed"]
    assert [line for line in code.splitlines() if line == "import os"] == ["import os"]
    assert [line for line in code.splitlines() if line == "import json"] == ["import json"]


def test_imports_come_in_their_groups() -> None:
    lines = convert().code.splitlines()
    assert lines.index("import copy") < lines.index("import json") < lines.index("import os")
    assert lines.index("") < lines.index("import deepspeed") < lines.index("import torch")


def test_a_future_import_stays_first() -> None:
    migrated = migrate('"""Train."""\nfrom __future__ import annotations\n\n' + script())
    lines = migrated.code.splitlines()
    assert lines[1] == "from __future__ import annotations"


def test_the_first_lines_of_a_script_stay_first() -> None:
    migrated = migrate("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Copyright\n" + script())
    assert migrated.code.startswith("#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n# Copyright\n")


def test_two_blank_lines_stand_around_helpers() -> None:
    code = convert(
        resume="""
            if args.resume:
                checkpoint = torch.load(args.resume)
                model.load_state_dict(checkpoint["model"])
                optimizer.load_state_dict(checkpoint["optimizer"])
            """
    ).code
    start = code.index("_resume_requests = []")
    assert code[start - 3 : start] == "\n\n\n"
    after = code.index("parser = argparse")
    assert code[after - 3 : after] == "\n\n\n"


def test_names_given_to_the_wrapper_in_between_get_the_engine() -> None:
    migrated = convert(
        wrap="model = DDP(Net().cuda())\nnetwork = model",
        loop="""
            for x, y in train_loader:
                loss = F.cross_entropy(network(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            """,
    )
    assert "network = model\n" in migrated.section("optimizer")


def test_a_file_without_a_standard_module_gets_a_group_for_it() -> None:
    source = script(data=FIXED)
    for name in ("argparse", "contextlib", "copy", "os", "shutil"):
        source = source.replace(f"import {name}\n", "", 1)
    source = source.replace('os.environ["LOCAL_RANK"]', "0").replace("argparse.ArgumentParser()", "torch.Parser()")
    migrated = migrate(source)
    assert migrated.code.startswith("import os\n\nimport deepspeed\nimport torch\n")
