"""The codes of notes; ``explained`` says what they stand for. A code is never used again for something else.

1xx what a source really says, 2xx what a target cannot carry, 3xx "auto" and values, 4xx FSDP.
"""

from __future__ import annotations

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

REJECTED = frozenset({BESIDE_FILE, PRECISION_IS_FALSE, BAD_VALUE, BOTH_PRECISIONS, REFUSED_KEY})
"""The codes of what the consumer stops at with an error."""
