"""The codes of files that do not get through the codemod."""

from __future__ import annotations

from dsmigrate.codemod.model import Idea, Kind

UNREADABLE = "MG900"
"""The codemod's own code for content it cannot read; here for paths that lead to none."""

INTERNAL = "MG998"

CONFLICT = "MG914"

BESIDE = "MG120"

LAZILY = "MG228"

IDEAS = (
    Idea(
        code=INTERNAL,
        title="dsmigrate failed on this file",
        summary="An error of dsmigrate itself; the file is left as it is and the other files are not affected.",
        why=(
            "No input should lead here. The message names the exception and the place in dsmigrate; the file, or the "
            "part of it that still fails, makes a good report."
        ),
        source="dsmigrate",
        kind=Kind.REFUSED,
    ),
    Idea(
        code=BESIDE,
        title="A helper that other scripts use gets a second form",
        summary="The old form stays for scripts that are not converted; the converted one uses its own.",
        why=(
            "A module that several scripts use is changed only if all of them keep working. What they use stays as it "
            "is; a copy of it beside, with _deepspeed (a class: DeepSpeed) behind its name, is converted. Convert the "
            "scripts in one run, or name them all, and one form is enough."
        ),
        source="dsmigrate",
        kind=Kind.KEPT,
    ),
    Idea(
        code=LAZILY,
        title="A shared module imports DeepSpeed where it uses it",
        summary="The import stands inside of the functions, as scripts that are not converted import the module too.",
        why=(
            "An import at the head of a module that other scripts share would make all of them need DeepSpeed, also "
            "those that use none of it, and DeepSpeed would look at the GPUs before they choose theirs by "
            "CUDA_VISIBLE_DEVICES. Scripts that call a function which does use it are named: they need DeepSpeed "
            "installed."
        ),
        source="dsmigrate",
        kind=Kind.KEPT,
    ),
    Idea(
        code=CONFLICT,
        title="Several scripts need a module in different forms",
        summary="A module that the conversion would change is used by another script, which would stop working.",
        why=(
            "A helper that several entry scripts use is converted only if all of them keep working: they are converted "
            "in one run, and the module comes out the same for each; or the old form stays beside the new one (MG120). "
            "Where neither is possible, nothing of the set is written. Convert one script after the other, name all "
            "scripts in one command, or separate the helper."
        ),
        source="dsmigrate",
        kind=Kind.REFUSED,
    ),
)
