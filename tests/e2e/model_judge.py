"""Builds models of the transformers library on the meta device and tells the size of every tensor.

One job ``{"values": {…}}``, a ``config.json``, per line of standard input; one answer ``{"sizes": […]}`` per line, or
``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

TASKS = {
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForConditionalGeneration": "AutoModelForSeq2SeqLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
    "ForPreTraining": "AutoModelForPreTraining",
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForTokenClassification": "AutoModelForTokenClassification",
    "ForQuestionAnswering": "AutoModelForQuestionAnswering",
    "ForImageClassification": "AutoModelForImageClassification",
    "EncoderModel": "AutoModelForTextEncoding",
    "Model": "AutoModel",
}
SEEING = "AutoModelForImageTextToText"


def main() -> None:
    """Answer what standard input asks for."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for line in sys.stdin:
        try:
            answer = built(json.loads(line))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
    answers.flush()


def built(job: dict[str, Any]) -> dict[str, Any]:
    """Return the sizes of the parameters of a model in their order; those that modules share come once."""
    import torch  # noqa: PLC0415 - after the library's talk was sent elsewhere
    import transformers  # noqa: PLC0415

    values = dict(job["values"])
    kind = values.pop("model_type")
    name = (values.get("architectures") or ["ForCausalLM"])[0]
    task = next(known for known in TASKS if name.endswith(known))
    config = transformers.AutoConfig.for_model(kind, **values)
    made = TASKS[task]
    if task == "ForConditionalGeneration":
        made = {"whisper": "AutoModelForSpeechSeq2Seq"}.get(kind, made if config.is_encoder_decoder else SEEING)
    with torch.device("meta"):
        model = getattr(transformers, made).from_config(config)
    model.tie_weights()
    return {"sizes": [parameter.numel() for parameter in model.parameters()], "class": type(model).__name__}


if __name__ == "__main__":
    main()
