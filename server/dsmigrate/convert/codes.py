"""The codes of notes. A code is never used again for something else.

1xx what a source really says, 2xx what a target cannot carry, 3xx "auto" and values, 4xx FSDP.
"""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_KEY = "CV101"
BESIDE_FILE = "CV102"
NVME_PATH_LOST = "CV103"
PRECISION_IS_FALSE = "CV104"
CLIPPING_LEFT_OUT = "CV105"
BAD_VALUE = "CV106"
DUPLICATE = "CV107"
NO_FILE = "CV108"
NOT_DEEPSPEED = "CV109"
ARGUMENT_IGNORED = "CV110"
EXPRESSION = "CV111"
PATH_UNUSED = "CV112"
BOTH_PRECISIONS = "CV113"
REFUSED_KEY = "CV114"
NO_PLACE = "CV201"
OVERWRITTEN = "CV202"
FILLED_ELSEWHERE = "CV203"
PRECISION_SECTION = "CV204"
CLIPPING_OFF = "CV205"
AROUND_LOST = "CV206"
MUST_MATCH = "CV207"
CARRIED_WHOLE = "CV208"
RESOLVED = "CV301"
INTRODUCED = "CV302"
LEFT_TO_DEEPSPEED = "CV303"
FSDP_LOST = "CV401"
FSDP_TOLD = "CV402"


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for; ``rejects`` says that the consumer stops with an error."""

    summary: str
    rejects: bool = False


CODES: dict[str, Code] = {
    UNKNOWN_KEY: Code("A key of `deepspeed_config` that Accelerate does nothing with"),
    BESIDE_FILE: Code("A key that may not stand beside `deepspeed_config_file`", rejects=True),
    NVME_PATH_LOST: Code("An NVMe path in Accelerate's YAML, which its launcher drops"),
    PRECISION_IS_FALSE: Code("`mixed_precision: no` without quotes, which YAML reads as false", rejects=True),
    CLIPPING_LEFT_OUT: Code("`gradient_clipping: 0` in Accelerate, which leaves the key out"),
    BAD_VALUE: Code("A value that the consumer cannot read", rejects=True),
    DUPLICATE: Code("A key that is given twice"),
    NO_FILE: Code("A config file that is not there"),
    NOT_DEEPSPEED: Code("A DeepSpeed block that is not used, as `distributed_type` says something else"),
    ARGUMENT_IGNORED: Code("An argument of the plugin beside a config that has its own value"),
    EXPRESSION: Code("An expression of the script, for which the target has no place"),
    PATH_UNUSED: Code("An NVMe path for a device that is not nvme"),
    BOTH_PRECISIONS: Code("A mixed precision that contradicts the config", rejects=True),
    REFUSED_KEY: Code(
        "A key at the top of Accelerate's YAML, or an argument of its plugin, that does not exist", rejects=True
    ),
    NO_PLACE: Code("A key that the target has no place for"),
    OVERWRITTEN: Code("A key that the consumer of the target writes itself"),
    FILLED_ELSEWHERE: Code("A value that the target takes from the script"),
    PRECISION_SECTION: Code("Mixed precision that the target sets up in its own way"),
    CLIPPING_OFF: Code("Gradient clipping that cannot be switched off in the target"),
    AROUND_LOST: Code("What stands around the config and belongs to the launch in the target"),
    MUST_MATCH: Code("A value that the Trainer compares with an argument"),
    CARRIED_WHOLE: Code("A config that is written whole, as fields cannot carry it"),
    RESOLVED: Code('An "auto" that was given its value'),
    INTRODUCED: Code('A value that became "auto" and an argument'),
    LEFT_TO_DEEPSPEED: Code('An "auto" that was left out, as DeepSpeed computes the value or has it as default'),
    FSDP_LOST: Code("A setting of FSDP without a counterpart in ZeRO-3"),
    FSDP_TOLD: Code("A setting of FSDP that ZeRO-3 does not need"),
}
