"""The codes of launch lines."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind

_COMM = "deepspeed/comm/comm.py, init_distributed; deepspeed/launcher/runner.py"

IDEAS = (
    Idea(
        "MG221",
        "A launch line starts a launcher now",
        "`python train.py` becomes `torchrun --nproc_per_node 1 train.py`, the one process that it was.",
        "deepspeed.init_distributed looks for RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT, so that one "
        "process alone needs them too. Raise the number to train on more. A script that calls mp.spawn goes on "
        "starting its processes, and its line stays (MG223). Only with --with-launchers.",
        _COMM,
        Kind.CONVERTED,
    ),
    Idea(
        "MG222",
        "A launch line for the deepspeed launcher",
        "With `--launcher deepspeed`, lines of torchrun become lines of the deepspeed launcher with the "
        "same processes.",
        "`--nproc_per_node N` is `--num_gpus N`, unless CUDA_VISIBLE_DEVICES is set: the launcher takes "
        "that where no number "
        "is given, and ignores it beside `--num_gpus`. `--no_local_rank` keeps it from handing the script "
        "an option that "
        "torchrun would not have handed over. A rendezvous of one node is left out; the port stays.",
        "deepspeed/launcher/runner.py and launch.py, 0.12 to 0.19.8; run on two processes",
        Kind.CONVERTED,
    ),
    Idea(
        "MG223",
        "A launch line stays",
        "torchrun, torch.distributed.launch, accelerate launch and the deepspeed launcher start a converted "
        "script as before; python does, where the script starts its processes itself.",
        "They set the variables that deepspeed.init_distributed reads. torch.distributed.launch without "
        "--use_env hands over "
        "--local-rank too, which a converted script takes in both spellings.",
        _COMM,
        Kind.KEPT,
    ),
    Idea(
        "MG224",
        "A launch line that is left to you",
        "The line starts a converted script, or may do so, and cannot be rewritten with certainty; the "
        "message has the line to "
        "write.",
        "Several nodes, programs around the interpreter, commands inside of variables or here-documents, "
        "ranks that are "
        "handed over by hand: what these mean is not on the line. Nothing is changed in the file.",
        "dsmigrate's own rule: what cannot be proven is not rewritten",
        Kind.TODO,
        marked=False,
    ),
    Idea(
        "MG226",
        "SLURM or MPI keeps starting the processes",
        "`srun python train.py` and `mpirun python train.py` stay, where the script takes its ranks from SLURM or MPI.",
        "The converted script sets RANK, WORLD_SIZE and LOCAL_RANK from their numbers before it sets up its group.",
        "deepspeed/comm/comm.py, init_distributed",
        Kind.KEPT,
    ),
    Idea(
        "MG227",
        "MPI starts the processes",
        "`mpirun python train.py` stays; DeepSpeed finds its ranks through mpi4py.",
        "Where one of RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT is missing, "
        "deepspeed.init_distributed asks "
        "MPI for them, which needs the package mpi4py. A script that takes its ranks from "
        "OMPI_COMM_WORLD_RANK and the like hands them over itself (MG226).",
        "deepspeed/comm/comm.py, mpi_discovery",
        Kind.TODO,
        marked=False,
    ),
)
