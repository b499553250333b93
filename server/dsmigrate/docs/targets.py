"""The page of what ``--target-version`` changes."""

from __future__ import annotations

from dsmigrate.codemod.targets import differences
from dsmigrate.docs.pages import MARK

_TITLE = "# What `--target-version` changes"
_INTRODUCTION = (
    "A conversion is made for one DeepSpeed release: the newest, unless `--target-version` or the setting of that name "
    "says another. These are the places where the result differs; the rest is the same for every release from 0.12 on. "
    "`engine.backward` and `engine.step` are always written: every release has them."
)
_TRIED = """\
## What was tried

On two CPU processes, the losses against those of the original: with torch 2.13 releases from 0.14.4 on; with torch
2.3.1 and numpy 1.26 those below, which import what later ones do not have. `tests/e2e/older_site` lets releases up to
0.14.0 start without Intel's extension of torch.

| release | ZeRO | scripts | found |
|---|---|---|---|
| 0.12.1 to 0.12.5 | 0 | 4 cases: SGD, Adam, AdamW, clipping, accumulation, bf16 autocast | the losses of the original |
| 0.12.6 | 0 | 32 cases, none with fp16 | the losses of the original |
| 0.12.6 | 1, 3 | `slurm_env`, `no_sync_accum` | losses part by 1e-2 with Adam, 5e-5 with SGD and weight decay: marked |
| 0.13.0, 0.13.1 | 0 | the same 4 cases | the losses of the original |
| 0.13.2 | 0 | the two that clip | losses part by a half: marked |
| 0.13.2 | 0 to 3 | the others at 0, all at 1 to 3 | the losses of the original |
| 0.13.3, 0.13.4 | 0 to 3 | the same 4 cases | the losses of the original |
| 0.13.5 | 0 to 3 | 14 cases: SGD, Adam, AdamW, clipping, accumulation, bf16 autocast | the losses of the original |
| 0.13.5 | 0 to 3 | `vit_fp16_scaler --amp`, which overflows | other losses at 0, nan at 1 to 3: marked |
| 0.14.0 to 0.14.2 | 0 to 3 | the same 4 cases | the losses of the original |
| 0.14.3 | 0 to 3 | 8 cases, those 4 among them | the losses of the original |

To try a release, in Python 3.11 (older ones need a torch of their time):

```sh
python3.11 -m venv older && older/bin/pip install torch==2.3.1 "numpy<2" "setuptools<70" wheel ninja
DS_BUILD_OPS=0 older/bin/pip install --no-build-isolation deepspeed==0.13.5
DSMIGRATE_E2E_RELEASE=0.13.5 DSMIGRATE_TORCH_PYTHON=$PWD/older/bin/python pytest tests/e2e/test_training_parity.py
```

What is marked for the person there (a `GradScaler` in use before 0.18.0, ZeRO before 0.13.2, a
clip at ZeRO 0 in 0.13.2) fails, as it should."""


def page() -> str:
    """Return the text of ``docs/target-versions.md``."""
    rows = []
    for entry in differences().values():
        span = f"{entry.since} to {entry.until}" if entry.until else f"from {entry.since} on"
        rows.append(f"| {entry.title} | {span} | {entry.inside} | {entry.outside} |")
    sources = [f"- {entry.title}: {entry.source}" for entry in differences().values()]
    table = "\n".join(["| what | releases | for these | for all others |", "|---|---|---|---|", *rows])
    return "\n\n".join([MARK_OF_FACTS, _TITLE, _INTRODUCTION, table, _TRIED, "## Sources", "\n".join(sources)]) + "\n"


MARK_OF_FACTS = MARK.replace("the idea in the source", "schemas/deepspeed/targets.json")
