"""Results to report on."""

from __future__ import annotations

from dsmigrate.codemod.model import Change, FileResult, Kind, Status
from dsmigrate.report.view import Entry

CONVERTED = FileResult(
    "src/train.py",
    Status.CONVERTED_WITH_TODOS,
    (
        Change("MG301", Kind.CONVERTED, 120, 124, "GradScaler gives way to the engine", "fp16 scales in the engine"),
        Change("MG101", Kind.CONVERTED, 41, 41, "the DDP wrap becomes deepspeed.initialize", ""),
        Change("MG202", Kind.KEPT, 9, 9, "dist.barrier stays", "collectives work as before"),
        Change(
            "MG601", Kind.TODO, 200, 203, "the checkpoint is written by a helper\nof another module", "not seen here"
        ),
    ),
    diff="--- a/src/train.py\n+++ b/src/train.py\n@@ -1 +1 @@\n-a\n+b\n",
    new_source=b"b\n",
    config={"train_micro_batch_size_per_gpu": 8, "zero_optimization": {"stage": 2}},
    launch=("torchrun --nproc_per_node=2 src/train.py", "deepspeed src/train.py"),
    notes=(Change("MG801", Kind.KEPT, 41, 41, "buffers are broadcast once", "DDP does so at every forward"),),
)
REFUSED = FileResult(
    "gan.py",
    Status.REFUSED,
    (Change("MG901", Kind.REFUSED, 77, 80, "two models are trained", "one engine trains one model"),),
)
UNCHANGED = FileResult("utils.py", Status.UNCHANGED)
BROKEN = FileResult(
    "old.py",
    Status.ERROR,
    (Change("MG900", Kind.REFUSED, 3, 3, "this is Python 2, not Python 3", "Python itself would not read it"),),
)


def entry(result: FileResult, *, in_the_way: bool = False) -> Entry:
    return Entry(result, "src/ds_config.json" if result.config else None, in_the_way)
