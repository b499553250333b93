"""Where commands stand in the kinds of files that have some."""

from __future__ import annotations

import pytest

from dsmigrate.launchers.regions import kind_of
from tests.launchers.lines import converted


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("run.sh", "", "shell"),
        ("job.slurm", "", "shell"),
        ("go", "#!/usr/bin/env bash", "shell"),
        ("go", "#!/usr/bin/python", ""),
        ("Makefile", "", "make"),
        ("README.md", "", "markdown"),
        ("docs/x.rst", "", "rst"),
        ("Dockerfile.gpu", "", "docker"),
        (".github/workflows/x.yml", "", "yaml"),
        ("package.json", "", ""),
        ("train.py", "", ""),
    ],
)
def test_a_file_is_known_by_its_name_or_first_line(name: str, head: str, kind: str) -> None:
    assert kind_of(name, head) == kind


def test_recipes_of_a_makefile_with_its_variables() -> None:
    done = converted(
        "N = 3\nPYTHON ?= python\ntrain: four.py\n\t@$(PYTHON) spawn.py --gpus $(N)\n\t-python four.py "
        "\\\n\t  --x\nX = python four.py\n",
        "make",
        "Makefile",
    )
    assert done.text == (
        "N = 3\nPYTHON ?= python\ntrain: four.py\n"
        "\t@$(PYTHON) -m torch.distributed.run --nproc_per_node $(N) spawn.py --gpus $(N)\n"
        "\t-torchrun --nproc_per_node 4 four.py \\\n\t  --x\nX = python four.py\n"
    )
    assert [line for line, _, _ in done.decisions] == [4, 5]


def test_code_blocks_of_a_readme_and_no_others() -> None:
    done = converted(
        """
        Run `python four.py`; four.py is short. `four.py` too.

        ```console
        (env) $ python four.py \\
            --x
        python four.py is what it printed
        ```

        ~~~~python
        python four.py
        ~~~~

            python four.py --y

        ``` {.bash}
        cd tools/pkg
        python deep.py
        ```
        """,
        "markdown",
        "README.md",
    )
    expected = """
        Run `torchrun --nproc_per_node 4 four.py`; four.py is short. `four.py` too.

        ```console
        (env) $ torchrun --nproc_per_node 4 four.py \\
            --x
        python four.py is what it printed
        ```

        ~~~~python
        python four.py
        ~~~~

            torchrun --nproc_per_node 4 four.py --y

        ``` {.bash}
        cd tools/pkg
        torchrun --nproc_per_node 2 deep.py
        ```
        """
    assert done.text == "\n".join(line[8:] for line in expected.split("\n")).removeprefix("\n")


def test_literal_blocks_of_restructured_text() -> None:
    text = "Run::\n\n    python four.py\n\npython four.py\n\n.. code-block:: python\n\n    python four.py\n"
    done = converted(text, "rst", "docs/a.rst")
    assert done.text == text.replace("    python four.py", "    torchrun --nproc_per_node 4 four.py", 1)


def test_both_forms_of_a_dockerfile() -> None:
    text = (
        "FROM x\nCOPY four.py /app/four.py\nRUN pip install x && \\\n    python four.py\n"
        'CMD ["python", "-u", "/app/four.py", "a b"]\n'
    )
    done = converted(text, "docker", "Dockerfile")
    assert done.text == (
        "FROM x\nCOPY four.py /app/four.py\nRUN pip install x && \\\n    torchrun --nproc_per_node 4 four.py\n"
        'CMD ["torchrun", "--nproc_per_node", "4", "/app/four.py", "a b"]\n'
    )


def test_commands_in_yaml() -> None:
    text = (
        "a:\n  - run: python four.py\n  - name: python four.py\n    run: |\n      cd tools\n      python pkg/deep.py\n"
        '  - command: ["python", "four.py"]\n  - run: "python four.py --x"\n  - run: >\n      python\n      four.py\n'
    )
    done = converted(text, "yaml", ".github/workflows/a.yml")
    assert done.text == (
        "a:\n  - run: torchrun --nproc_per_node 4 four.py\n  - name: python four.py\n    run: |\n      cd tools\n"
        '      torchrun --nproc_per_node 2 pkg/deep.py\n  - command: ["torchrun", "--nproc_per_node", "4", "four.py"]\n'
        '  - run: "torchrun --nproc_per_node 4 four.py --x"\n  - run: >\n      python\n      four.py\n'
    )


def test_a_batch_file_says_how_many_tasks_srun_starts() -> None:
    one = converted("#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gres=gpu:4\nsrun python four.py\n")
    assert one.text.endswith("srun torchrun --nproc_per_node 4 four.py\n")
    two = converted("#!/bin/bash\n#SBATCH -N 2\nsrun python four.py\n")
    assert two.decisions == [(3, "MG224", "todo")]


@pytest.mark.parametrize("number", ["²", "٣", "1-4", "9" * 5000])
@pytest.mark.parametrize("option", ["--nodes", "--ntasks", "--ntasks-per-node"])
def test_a_batch_file_may_ask_for_what_is_no_number(option: str, number: str) -> None:
    done = converted(f"#!/bin/bash\n#SBATCH {option}={number}\nsrun python four.py\n")
    assert done.decisions
    assert done.decisions[0][0] == 3
