from __future__ import annotations

from pathlib import Path

import pytest

from dsmigrate.messages import entries, find, nearest
from dsmigrate.rules import every_rule

ROOT = Path(__file__).resolve().parents[2]
VALUES = ("17", "a.b.weight", "['x', 'y']")

PASTED = {
    "[rank0]: AssertionError: The parameter 255 has already been reduced.                     Gradient computed "
    "twice for this partition.                     Multiple gradient reduction is currently not supported.": (
        "gradient-reduced-twice"
    ),
    "ValueError: Please correct the following DeepSpeed config values that mismatch\nTrainingArguments values:\n"
    "- ds train_batch_size=8 vs hf train_batch_size (calculated)=128\n"
    "- ds optimizer.params.lr=0.0001 vs hf learning_rate=5e-05\n"
    "The easiest method is to set these DeepSpeed config values to 'auto'.": "hf-mismatch",
    "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed CUDA version 12.2 does "
    "not match the version torch was compiled with 11.7, unable to compile cuda/cpp extensions without a matching cuda "
    "version.": "cuda-version-mismatch",
    "  RuntimeError:\n  The detected CUDA version (12.1) mismatches the version that was used to compile\n"
    "  PyTorch (11.8). Please make sure to use the same CUDA versions.\n": "cuda-mismatch-torch",
    "[rank3]: pydantic_core._pydantic_core.ValidationError: 1 validation error for DeepSpeedZeroConfig\n"
    "[rank3]: stage3_prefetch_bucket_size\n"
    "[rank3]:   Input should be a valid integer, got a number with a fractional part [type=int_from_float, "
    "input_value=15099494.4, input_type=float]": "pydantic-2-integer",
    "ValidationError: 3 validation errors for DeepSpeedZeroConfig\nzero_hpz_partition_size\n"
    "extra fields not permitted (type=value_error.extra)": "pydantic-1-extra",
    "[rank1]:[E ProcessGroupNCCL.cpp:1414] [PG 0 Rank 1] Process group watchdog thread terminated with exception: "
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6075, OpType=_ALLGATHER_BASE, "
    "NumelIn=1366, NumelOut=4098, Timeout(ms)=1800000) ran for 2954391 milliseconds before timing out.": (
        "nccl-watchdog-timeout"
    ),
    "[rank1]:[E ProcessGroupNCCL.cpp:577] [Rank 1] Some NCCL operations have failed or timed out. Due to the "
    "asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted data.": (
        "nccl-operations-failed"
    ),
    "RuntimeError: tracing error at step 603: \nmodule id: 1, training: True\nexpected the next 1 parameters in the "
    "parameter fetch queue to be ({'id': 'name=transformer.visual.conv1.weight id=194', 'status': 'AVAILABLE'"
    + ", 'numel': 752640" * 40
    + "},) \nbut got \n ({'id': 19},).": "stage-3-tracing-error",
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity; "
    "22.70 GiB already allocated)": "cuda-out-of-memory",
    "    assert self.train_batch == micro_batch * grad_acc * self.world_size\nAssertionError: Check batch related "
    "parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 16 != 1 * 8 * "
    "1": "batch-sizes-disagree",
    "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.": (
        "loss-scale-at-minimum"
    ),
    "[2023-05-10 11:00:04,553] [INFO] [loss_scaler.py:188:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. "
    "Attempted loss scale: 65536, reducing to 32768": "overflow-skipped-step",
    'AssertionError: You are using an untested ZeRO Optimizer. Please add <"zero_allow_untested_optimizer": true> in '
    "the configuration file to use it.": "untested-zero-optimizer",
    "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of ZeRO stage 3": (
        "no-sync-with-zero"
    ),
    "ValueError: Found `optimizer` configured in the DeepSpeed config, but no `scheduler`. Please configure a "
    "scheduler in the DeepSpeed config.": "hf-optimizer-without-scheduler",
    "AssertionError: Not enough buffers 0 for swapping 1": "swap-buffers-too-few",
    "[2023-02-01 10:00:00,000] [ERROR] [launch.py:324:sigkill_handler] ['/usr/bin/python3', '-u', 'train.py'] exits "
    "with return code = -9": "process-exit-code",
    "raise ValueError(\\nValueError: When using `deepspeed_config_file`, the following accelerate config variables "
    "will be ignored: ['gradient_accumulation_steps', 'zero_stage'].\nPlease specify them appropriately in the "
    "DeepSpeed config file.\nIf you are using an accelerate config file, remove others config variables mentioned in "
    "the above specified list.\nThe easiest method is to create a new config following the questionnaire via  "
    "`accelerate config`.\nIt will only ask for the necessary config variables when using `deepspeed_config_file`.": (
        "accelerate-ignored-variables"
    ),
    "RuntimeError: \u2018weight\u2019 must be 2-D": "embedding-not-2d",
    "│ AssertionError: MoE not supported with Stage 3                              │": "moe-with-stage-3",
    "> AssertionError: zero stage 2 requires an optimizer": "zero-needs-optimizer",
    "ValueError: Type fp16 is not supported.": "fp16-unsupported-device",
    "RuntimeError: output tensor must have the same type as input tensor": "gather-dtypes",
    "AssertionError: need to call step() first": "scheduler-rate-before-step",
    "[INFO] [autotuner.py:1110:run_after_tuning] No optimal DeepSpeed configuration found by autotuning.": (
        "autotuning-nothing-found"
    ),
    "ModuleNotFoundError: No module named 'deepspeed.ops.adam.cpu_adam_op'": "prebuilt-op-missing",
    "AttributeError: 'DeepSpeedZeroOptimizer_Stage3' object has no attribute 'train'": "accelerate-optimizer-train",
    "PydanticDeprecatedSince211: Accessing this attribute on the instance is deprecated, and will be removed in "
    "Pydantic V3. Instead, you should access this attribute from the model class.": "pydantic-fields-of-instance",
    "ValueError: Expected a string path to an existing deepspeed config, or a dictionary or a valid base64. Received: "
    "/root/ds.json": "config-path-not-found",
    "/nvme/zero_stage_3/fp16params/rank24/0_param.tensor.swp: buffer nbytes != file bytes 28824000 != 28311552": (
        "swap-file-size"
    ),
    "deepspeed_aio:   open for write  failed on /nvme/zero_stage_3/fp16params/rank0/0.tensor.swp error = 28": (
        "swap-file-not-opened"
    ),
    "ImportError: /opt/conda/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by "
    "/root/.cache/torch_extensions/py39_cu117/cpu_adam/cpu_adam.so)": "libstdcxx-too-old",
    "ImportError: /root/.cache/torch_extensions/py310_cu117/cpu_adam/cpu_adam.so: undefined symbol: "
    "curandCreateGenerator": "curand-missing",
    "ImportError: /usr/lib/python3.10/flash_attn_2_cuda.so: undefined symbol: _ZN3c104cuda9SetDeviceEi": (
        "undefined-symbol"
    ),
    "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be "
    "asynchronously reported at some other API call": "no-kernel-image",
    "RuntimeError: CUDA error: device-side assert triggered": "device-side-assert",
    "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1275, "
    "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.14.3\nncclSystemError: System call "
    "(e.g. socket, malloc) or external library call failed or device error. It can be also caused by unexpected exit "
    "of a remote peer": "nccl-system-error",
    "node1:12:99 [0] include/socket.h:456 NCCL WARN Net : Call to connect returned Connection refused, retrying": (
        "nccl-network"
    ),
    "traceback : Signal 9 (SIGKILL) received by PID 4067": "killed-for-memory",
    "  exitcode  : -9 (pid: 4067)": "killed-for-memory",
    "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 4067) of binary: "
    "/usr/bin/python3": "killed-for-memory",
    "WARNING:torch.distributed.elastic.multiprocessing.api:Sending process 4068 closing signal SIGTERM": (
        "ended-by-others"
    ),
    "Root Cause (first observed failure):\n[0]:\n  time      : 2023-05-01_12:00:00": "elastic-summary",
    "size mismatch for model.embed_tokens.weight: copying a param with shape torch.Size([0]) from checkpoint, the "
    "shape in current model is torch.Size([32000, 4096]).": "partitioned-weights-saved",
    "size mismatch for shared.weight: copying a param with shape torch.Size([250112, 512]) from checkpoint, the shape "
    "in current model is torch.Size([0]).": "loading-into-partitioned",
    "train.py: error: unrecognized arguments: --local_rank=0": "local-rank-argument",
    "ImportError: cannot import name 'log' from 'torch.distributed.elastic.agent.server.api' (/usr/lib/api.py)": (
        "elastic-log-import"
    ),
    "worker-2: Permission denied (publickey,password).": "pdsh-ssh-exit",
    "MisconfigurationException: Do not set `gradient_accumulation_steps` in the DeepSpeed config as this will be set "
    "with the `accumulate_grad_batches` argument passed via the Lightning Trainer.": "lightning-accumulation",
    "ValueError: ZeRO Offload can only work with DeepSpeed optimizers": "hf-offload-needs-deepspeed-optimizer",
    "Exception: Installed CUDA version 11.0 does not match the version torch was compiled with 10.1, unable to compile "
    "cuda/cpp extensions without a matching cuda version.": "cuda-version-mismatch",
    "gemm_test.h:6:10: fatal error: cuda_profiler_api.h: No such file or directory": "cuda-header-missing",
    "LINK : fatal error LNK1181: no se puede abrir el archivo de entrada 'aio.lib'": "op-not-prebuilt",
    "AttributeError: 'FieldInfo' object has no attribute 'required'": "pydantic-too-new",
    "TypeError: '>' not supported between instances of 'str' and 'float'": "auto-left-in-config",
    "TypeError: Zero is not an Optimizer": "scheduler-needs-torch-optimizer",
}


def test_each_text_filled_in_is_found_as_itself_among_all() -> None:
    for entry in entries():
        for text in entry.texts:
            for value in VALUES:
                said = f"[rank3]: RuntimeError: {text.text.replace('{}', value)}\n"
                assert [match.entry.name for match in find(said)] == [entry.name], said


@pytest.mark.parametrize(("pasted", "name"), PASTED.items(), ids=PASTED.values())
def test_what_people_paste_leads_to_its_entry(pasted: str, name: str) -> None:
    assert [match.entry.name for match in find(pasted)][:1] == [name]


def test_there_are_entries_enough_and_their_codes_are_rules() -> None:
    codes = {rule.code for rule in every_rule()}
    assert len(entries()) >= 420
    assert {code for entry in entries() for code in entry.codes} <= codes
    assert all(entry.texts for entry in entries())


def test_an_error_comes_before_the_warnings_of_its_traceback() -> None:
    found = find(
        "[WARNING] async_io requires the dev libaio .so object and headers but these were not found.\n"
        'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n'
        "AssertionError: MoE not supported with Stage 3\n"
        "[launch.py] [INFO] Killing subprocess 7"
    )
    assert [match.entry.name for match in found] == ["moe-with-stage-3", "async-io-missing", "killing-subprocess"]


def test_the_text_that_says_most_wins_where_several_overlap() -> None:
    (match,) = find("Config parameter cpu_offload is deprecated use offload_optimizer instead. It is a section.")
    assert match.text.text == "Config parameter {} is deprecated use {} instead"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("untested ZeRO Optimizer", "untested-zero-optimizer"),
        ("incompatible with gradient partitioning logic of ZeRO", "no-sync-with-zero"),
        ("ValueError: When using `deepspeed_config_file`, the following accelerate config variables will be ignored: [",
         "accelerate-ignored-variables"),
        ("Elastic config: world size 3 is not valid with the list of valid GPU counts", "elasticity-world-size"),
    ],
)  # fmt: skip
def test_a_part_and_other_words_are_near(text: str, name: str) -> None:
    assert find(text) == []
    assert nearest(text)[0].entry.name == name


@pytest.mark.parametrize(
    "text",
    [
        "how do I choose the ZeRO stage for a model of 7 billion parameters",
        "the loss is nan after some steps and the gradient norm grows",
        "ModuleNotFoundError: No module named 'fastchat'",
        "KeyError: 'labels'",
        "Training finished in 3 hours, saving model checkpoint to /tmp/out",
        "{} {} {}",
        "",
    ],
)
def test_prose_and_other_errors_are_near_to_nothing(text: str) -> None:
    assert find(text) == []
    assert nearest(text) == []


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "docs/how-it-decides.md", "docs/memory.md"])
def test_nothing_matches_prose(name: str) -> None:
    assert find((ROOT / name).read_text(encoding="utf-8")) == []
