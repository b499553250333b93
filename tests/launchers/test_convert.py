"""What becomes of launch lines: what stays and what is left to the person first."""

from __future__ import annotations

import pytest

from tests.launchers.lines import converted

# ---------------------------------------------------------------------------------------------- nothing to say


@pytest.mark.parametrize(
    "line",
    [
        "echo 'python spawn.py'",
        "black spawn.py && git add spawn.py",
        "python other/train.py",
        "python sweep.py --script spawn.py",
        "cd other && python train.py",
        "python my_spawn.py; python spawn.python",
        "# see spawn.py for the options",
    ],
)
def test_lines_that_start_no_converted_script_are_passed_over(line: str) -> None:
    done = converted(line)
    assert (done.text, done.changes) == (line, ())


# ---------------------------------------------------------------------------------------------- what stays


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("torchrun --nproc_per_node $N train.py --epochs 3", "MG223"),
        ("exec torchrun --nnodes=2:4 --rdzv-backend=c10d --max_restarts 3 train.py", "MG223"),
        ("python -m torch.distributed.run --nproc_per_node=2 -m train", "MG223"),
        ("python3 -u -m torch.distributed.launch --nproc_per_node 8 --use_env train.py", "MG223"),
        ("L='torchrun --nproc_per_node 2'\n$L train.py", "MG223"),
        ('torchrun --nproc_per_node 2 "$HERE/train.py"', "MG223"),
        ("accelerate launch --config_file c.yaml train.py", "MG223"),
        ("deepspeed --num_gpus 2 train.py", "MG223"),
        ("srun --ntasks 8 python -u slurm.py", "MG226"),
        ("srun torchrun --nnodes $N --node_rank $R train.py", "MG223"),
        ("RANK=0 LOCAL_RANK=0 WORLD_SIZE=1 MASTER_ADDR=a MASTER_PORT=1 python train.py", "MG223"),
        ("#!/bin/sh\n#SBATCH -N 2\npython slurm.py", "MG226"),
    ],
)
def test_lines_that_go_on_working_stay(line: str, code: str) -> None:
    done = converted(line)
    assert done.text == line
    assert [(change.code, change.kind.value) for change in done.changes] == [(code, "kept")]


def test_a_comment_with_a_launch_line_stays() -> None:
    assert converted("# python spawn.py --lr 1\n").decisions == [(1, "MG223", "kept")]


# ---------------------------------------------------------------------------------------------- what is left


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('torchrun --nproc_per_node 2 "$HERE/tools/train.py"', "may start the script"),
        ("python -O spawn.py", "torchrun starts Python without -O"),
        ("python spawn.py $@", "how many processes the script spawned is not known"),
        ("python spawn.py --lr 1 $ARGS", "how many processes the script spawned is not known"),
        ("python main.py $ARGS", "$ARGS may contain it"),
        ("python main.py --multiprocessing-distributed --world-size 2 --rank 0", "--world-size 2"),
        ("python main.py --multiprocessing-distributed --world-size 1 --rank $R", "--rank $R"),
        ("python train.py --rank 1 --dist-url tcp://a:1", "--rank hands the script its ranks"),
        ("python -m pdb spawn.py", "`python` starts the script"),
        ("coverage run spawn.py", "`coverage` starts the script"),
        ("./spawn.py", "`./spawn.py` starts the script"),
        ("torchrun --nnodes 2 --nproc_per_node 1 spawn.py", "raise --nproc_per_node"),
        ("srun python spawn.py", "srun sets no RANK"),
        ("srun -N 2 python spawn.py", "srun sets no RANK"),
        ("RANK=$i WORLD_SIZE=2 python train.py", "set LOCAL_RANK, MASTER_ADDR, MASTER_PORT too"),
        ("C='python spawn.py --gpus 2'\nsrun $C", "a text that another command is made from"),
        ("cat <<E | sbatch\npython spawn.py\nE", "may start the script"),
        ("x=$(python spawn.py)", "may start the script"),
        ("python 'spawn.py", "may start the script"),
        ("bash -c \"python spawn.py --gpus '$N'\"", "stands in quotes itself"),
    ],
)
def test_lines_that_are_not_certain_are_left_with_the_reason(line: str, said: str) -> None:
    done = converted(line)
    assert done.text == line
    assert {(change.code, change.kind.value) for change in done.changes} == {("MG224", "todo")}, done.said
    assert said in done.said


def test_a_script_that_takes_its_ranks_from_mpi_is_started_by_it() -> None:
    done = converted("mpirun -np 2 python mpi.py")
    assert done.text == "mpirun -np 2 python mpi.py"
    assert done.decisions == [(1, "MG226", "kept")]


def test_mpi_needs_mpi4py() -> None:
    done = converted("mpirun -np 2 python train.py")
    assert done.decisions == [(1, "MG227", "todo")]
    assert "install mpi4py" in done.said


def test_a_name_that_two_files_have_is_not_guessed() -> None:
    """``scripts/`` and the root both hold a train.py: which one the script means depends on where it is started."""
    done = converted("python train.py", path="other/run.sh")
    assert done.decisions == [(1, "MG224", "todo")]


# ---------------------------------------------------------------------------------------------- what is converted


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("python four.py --lr 1", "torchrun --nproc_per_node 4 four.py --lr 1"),
        ("python four.py $@", "torchrun --nproc_per_node 4 four.py $@"),
        ("python3 -u spawn.py", "torchrun --nproc_per_node gpu spawn.py"),
        ("python spawn.py --gpus 2", "torchrun --nproc_per_node 2 spawn.py --gpus 2"),
        ("python spawn.py --gpus=$N $X", "torchrun --nproc_per_node $N spawn.py --gpus=$N $X"),
        ('$PYTHON spawn.py --gpus "$N"', '$PYTHON -m torch.distributed.run --nproc_per_node "$N" spawn.py --gpus "$N"'),
        ("/opt/bin/python3.11 four.py", "/opt/bin/python3.11 -m torch.distributed.run --nproc_per_node 4 four.py"),
        ("CUDA_VISIBLE_DEVICES=1,2 nohup python \\\n  spawn.py \\\n --lr 1 > log 2>&1",
         "CUDA_VISIBLE_DEVICES=1,2 nohup torchrun --nproc_per_node gpu \\\n  spawn.py \\\n --lr 1 > log 2>&1"),
        ("python four.py &\nwait", "torchrun --standalone --nproc_per_node 4 four.py &\nwait"),
        ("cd tools && python -m pkg.deep", "cd tools && torchrun --nproc_per_node 2 -m pkg.deep"),
        ("S=four.py\npython $S", "S=four.py\ntorchrun --nproc_per_node 4 $S"),
        ("if [ -f a ]; then python four.py; fi", "if [ -f a ]; then torchrun --nproc_per_node 4 four.py; fi"),
        ("bash -c 'python four.py'", "bash -c 'torchrun --nproc_per_node 4 four.py'"),
        ("srun -N1 -n1 python four.py", "srun -N1 -n1 torchrun --nproc_per_node 4 four.py"),
        ("uv run python four.py", "uv run torchrun --nproc_per_node 4 four.py"),
        ("python main.py --multiprocessing-distributed --world-size 1 --rank 0 DATA",
         "torchrun --nproc_per_node gpu main.py --multiprocessing-distributed --world-size 1 --rank 0 DATA"),
        ("python main.py --gpu 0 DATA", "torchrun --nproc_per_node 1 main.py --gpu 0 DATA"),
        ("python train.py --resume x", "torchrun --nproc_per_node 1 train.py --resume x"),
        ("python four.py\r\necho\r\n", "torchrun --nproc_per_node 4 four.py\r\necho\r\n"),
    ],
)  # fmt: skip
def test_scripts_that_spawned_get_a_launcher_with_the_same_number_of_processes(line: str, after: str) -> None:
    done = converted(line)
    assert done.text == after
    assert {(change.code, change.kind.value) for change in done.changes} == {("MG221", "converted")}


def test_the_lines_of_a_decision_are_those_of_the_command() -> None:
    done = converted("echo\n\npython \\\n  four.py \\\n  --lr 1\n")
    (change,) = done.changes
    assert (change.line, change.end_line) == (3, 5)


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("torchrun --nproc_per_node 2 bare.py -x", "deepspeed --num_gpus 2 --no_local_rank bare.py -x"),
        ("torchrun --standalone --nnodes=1 --nproc-per-node=gpu bare.py", "deepspeed --no_local_rank bare.py"),
        ("torchrun --nproc_per_node $N --master_port=$P bare.py",
         "deepspeed --num_gpus $N --master_port $P --no_local_rank bare.py"),
        ("CUDA_VISIBLE_DEVICES=2,3 torchrun --nproc_per_node 2 bare.py",
         "CUDA_VISIBLE_DEVICES=2,3 deepspeed --no_local_rank bare.py"),
        ("torchrun --rdzv_backend c10d --rdzv_endpoint localhost:29400 --nproc_per_node 2 -m bare",
         "deepspeed --num_gpus 2 --master_port 29400 --no_local_rank --module bare"),
        ("python -m torch.distributed.launch --nproc_per_node 2 train.py", "deepspeed --num_gpus 2 train.py"),
        ("python -m torch.distributed.launch --nproc_per_node 2 --use_env train.py",
         "deepspeed --num_gpus 2 --no_local_rank train.py"),
        ("python four.py", "deepspeed --num_gpus 4 --no_local_rank four.py"),
        ("python -m four", "deepspeed --num_gpus 4 --no_local_rank --module four"),
    ],
)  # fmt: skip
def test_the_deepspeed_launcher_starts_the_same_processes_where_it_is_asked_for(line: str, after: str) -> None:
    done = converted(line, launcher="deepspeed")
    assert done.text == after
    assert {change.code for change in done.changes} == {"MG222"}


@pytest.mark.parametrize(
    "line",
    [
        "torchrun --max_restarts 3 --nproc_per_node 2 bare.py",
        "torchrun $OPTIONS bare.py",
        "torchrun --log_dir x --nproc_per_node 2 bare.py",
        "CUDA_VISIBLE_DEVICES=$G torchrun --nproc_per_node 2 bare.py",
        "CUDA_VISIBLE_DEVICES=1,2,3 torchrun --nproc_per_node 2 bare.py",
        "CUDA_VISIBLE_DEVICES=3,1 torchrun --nproc_per_node 2 bare.py",
        "export CUDA_VISIBLE_DEVICES=$1\ntorchrun --nproc_per_node 2 bare.py",
        "srun torchrun --nproc_per_node 2 bare.py",
        "$PYTHON -m torch.distributed.run --nproc_per_node 2 bare.py",
        "python -m torch.distributed.launch --nproc_per_node 2 bare.py",
    ],
)
def test_what_the_deepspeed_launcher_would_do_differently_stays_with_torchrun(line: str) -> None:
    done = converted(line, launcher="deepspeed")
    assert done.text == line
    assert [(change.code, change.kind.value) for change in done.changes] == [("MG223", "kept")]


def test_several_nodes_are_left_with_the_hostfile_to_write() -> None:
    done = converted("torchrun --nnodes 2 --node_rank $R --nproc_per_node 8 bare.py", launcher="deepspeed")
    assert done.decisions == [(1, "MG224", "todo")]
    assert "`worker-1 slots=8`" in done.said
    assert "deepspeed --hostfile hostfile --num_gpus 8 --no_local_rank bare.py" in done.said


def test_a_script_that_spawned_gets_torchrun_where_the_deepspeed_launcher_would_take_other_devices() -> None:
    done = converted("CUDA_VISIBLE_DEVICES=$G python four.py", launcher="deepspeed")
    assert done.text == "CUDA_VISIBLE_DEVICES=$G torchrun --nproc_per_node 4 four.py"
