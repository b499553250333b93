"""The functions that a converted script gets for saving and resuming."""

from __future__ import annotations

from dsmigrate.codemod.plan import Plan
from dsmigrate.codemod.steps.clipping import engine_clips

_HELPERS = '''_checkpoint_requests = []


def request_checkpoint(state, path):
    """Ask for a checkpoint, from under a rank guard; save_requested_checkpoints writes it on all ranks."""
    state = state.copy() if isinstance(state, dict) else state  # the script may go on with it before all ranks save
    _checkpoint_requests.append((state, os.fspath(path)))


def save_requested_checkpoints(engine):
    """Save what rank 0 asked for. Saving is collective: every rank has to come here."""
    paths = [[path for _, path in _checkpoint_requests]]
    states = [state for state, _ in _checkpoint_requests]
    _checkpoint_requests.clear()
    for path in paths[0]:
        if torch.distributed.get_rank() == 0 and os.path.isfile(path):
            os.replace(path, path + ".before")  # a file of the DDP script stands where the directory has to be
    torch.distributed.broadcast_object_list(paths, src=0)
    for index, path in enumerate(paths[0]):
        state = states[index] if torch.distributed.get_rank() == 0 else None
        engine.save_checkpoint(os.path.dirname(path) or ".", tag=os.path.basename(path), client_state={"script": state})
        if torch.distributed.get_rank() == 0:
            os.utime(path)  # a directory's time does not change when its files are written over
'''


_OWN_LATEST = {
    '        engine.save_checkpoint(os.path.dirname(path) or ".", tag=os.path.basename(path), client_state={"script": state})\n': (
        '        folder, tag = os.path.dirname(path) or ".", os.path.basename(path)\n'
        '        engine.save_checkpoint(folder, tag, client_state={"script": state}, save_latest=False)\n'
    )
}
"""What is other where the script has something of its own that is called as the file into which DeepSpeed writes the last tag."""


_LOAD_HELPERS = '''_resume_requests = []


def read_checkpoint(path):
    """What the script itself put into a DeepSpeed checkpoint; the engine's part is loaded by resume_engine."""
    files = sorted(glob.glob(os.path.join(glob.escape(os.fspath(path)), "*mp_rank_00_model_states.pt")))
    if not files and os.path.exists(path):
        raise RuntimeError(f"{path} is no DeepSpeed checkpoint; a file of the DDP script cannot be resumed")
    if not files:
        raise FileNotFoundError(path)
    _resume_requests.append(os.fspath(path))
    return torch.load(files[0], map_location="cpu", weights_only=False)["script"]


def resume_engine(engine):
    """Load weights and optimizer state of the checkpoint that rank 0 read last, if any. All ranks come here."""
    path = [_resume_requests[-1] if _resume_requests else None]
    _resume_requests.clear()
    torch.distributed.broadcast_object_list(path, src=0)
    if path[0] is not None:
        engine.load_checkpoint(os.path.dirname(path[0]) or ".", tag=os.path.basename(path[0]))
'''


_FILES_TOO = """    if os.path.isfile(path):
        print(f"{path} is a file, no DeepSpeed checkpoint: an optimizer state in it is not restored")
        return torch.load(path, map_location="cpu", weights_only=False)
"""


_OWN_LIMIT = """        if engine.optimizer is not engine.basic_optimizer:
            engine.optimizer.clip_grad = engine.gradient_clipping()  # load_checkpoint brings back that of the run before
"""
"""ZeRO 1 and 2 and the half-precision optimizers save their limit (stage_1_and_2.py, _load_global_state)."""


_LOOKUPS = {
    "def read_checkpoint(path):\n": "def read_checkpoint(path, resume=True):\n",
    "\n    _resume_requests.append(os.fspath(path))\n": "\n    if resume:\n        _resume_requests.append(os.fspath(path))\n",
    'def read_checkpoint(path, map_location="cpu"):\n': 'def read_checkpoint(path, map_location="cpu", resume=True):\n',
    "the engine's part is loaded by resume_engine.\"": "the engine's part is loaded by resume_engine, with ``resume``.\"",
    "the checkpoint that rank 0 read last, if any": "the checkpoint that rank 0 read last with ``resume``, if any",
}
"""What is other in the functions for resuming where a checkpoint is also read to look something up."""


_PLACES = {
    "def read_checkpoint(path):\n": 'def read_checkpoint(path, map_location="cpu"):\n',
    "def read_checkpoint(path, resume=True):\n": 'def read_checkpoint(path, map_location="cpu", resume=True):\n',
    'map_location="cpu", weights_only': "map_location=map_location, weights_only",
}
"""What is other where tensors of a checkpoint stay in use where the script has placed them."""


REMOVE_HELPER = '''def remove_checkpoint(path, missing_ok=False):
    """Remove a checkpoint: a directory of DeepSpeed, or a file of the script before."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path) or not missing_ok:
        os.remove(path)
'''
_REMOVING_LATER = '''

_checkpoint_removals = []


def is_requested(path):
    """Whether a checkpoint is asked for and not written yet."""
    return any(os.path.abspath(asked) == os.path.abspath(path) for _, asked in _checkpoint_requests)


def remove_checkpoint(path, missing_ok=False):
    """Remove a checkpoint, a directory or a file; a directory, while others are requested, when these are there."""
    missing_ok = missing_ok or is_requested(path)
    others = [asked for asked in _checkpoint_requests if os.path.abspath(asked[1]) != os.path.abspath(path)]
    _checkpoint_requests[:] = others
    is_directory = os.path.isdir(path) and not os.path.islink(path)
    if others and is_directory and path not in _checkpoint_removals:
        _checkpoint_removals.append(path)
    elif is_directory:
        shutil.rmtree(path)
    elif os.path.lexists(path) or not missing_ok:
        os.remove(path)
'''
_REMOVED_AT_LAST = """    written = [os.path.join(os.path.abspath(path), "") for path in paths[0]]
    while _checkpoint_removals:
        path = _checkpoint_removals.pop()
        if not any(there.startswith(os.path.join(os.path.abspath(path), "")) for there in written):
            remove_checkpoint(path, missing_ok=True)
"""


_COPY_HELPER = '''def copy_checkpoint(path, target):
    """Copy a checkpoint that all ranks have written, in the place of what stands there."""
    target = os.fspath(target)
    if os.path.isfile(path):
        return shutil.copyfile(path, target)
    shutil.copytree(path, target + ".new")
    if os.path.isdir(target):
        shutil.rmtree(target)
    elif os.path.isfile(target):
        os.replace(target, target + ".before")  # a file of the DDP script
    return os.replace(target + ".new", target)
'''


SAVED = '"saved by the engine"'


def need_helpers(plan: Plan, *, loading: bool) -> None:
    """Give the script the functions for saving or for resuming, once."""
    plan.need("os")
    plan.need("torch")
    text = _LOAD_HELPERS if loading else _saving(plan)
    if loading:
        plan.need("glob")
        if plan.facts.get("not_strict"):
            loaded = "tag=os.path.basename(path[0]))"
            text = text.replace(loaded, loaded[:-1] + ", load_module_strict=False)")
        if plan.facts.get("files_too"):
            mark = "    files = sorted("
            text = text.replace(mark, _FILES_TOO + mark).replace("; a file of the DDP script cannot be resumed", "")
        if engine_clips(plan):
            text += _OWN_LIMIT
        if plan.facts.get("looks_up"):
            text = _changed(text, _LOOKUPS)
        if plan.facts.get("places"):
            text = _changed(text, _PLACES)
    if text not in plan.helpers:
        plan.helpers.append(text)


def need_reading(plan: Plan) -> None:
    """Let ``read_checkpoint`` read without asking for the resume, where it is told to."""
    plan.facts["looks_up"] = True
    plan.helpers[:] = [_changed(text, _LOOKUPS) for text in plan.helpers]


def need_places(plan: Plan) -> None:
    """Let ``read_checkpoint`` place what it reads, where it is told to."""
    plan.facts["places"] = True
    plan.helpers[:] = [_changed(text, _PLACES) for text in plan.helpers]


def _changed(text: str, changes: dict[str, str]) -> str:
    for plain, asked in changes.items():
        text = text.replace(plain, asked)
    return text


def need_removal(plan: Plan, *, later: bool) -> None:
    """Give the script the function for removing; with ``later`` one that waits for what is requested and not written yet."""
    plan.need("shutil")
    plain = _saving(plan)
    removing = plain + _REMOVED_AT_LAST + _REMOVING_LATER
    if later and removing not in plan.helpers:
        plan.helpers[:] = [removing if text == plain else text for text in plan.helpers if text != REMOVE_HELPER]
    if not {removing, REMOVE_HELPER} & set(plan.helpers):
        plan.helpers.append(REMOVE_HELPER)


def _saving(plan: Plan) -> str:
    return _changed(_HELPERS, _OWN_LATEST) if plan.facts.get("own_latest") else _HELPERS


def need_copying(plan: Plan) -> None:
    """Give the script the function that copies a checkpoint which is there."""
    plan.need("os")
    plan.need("shutil")
    if _COPY_HELPER not in plan.helpers:
        plan.helpers.append(_COPY_HELPER)


def how_to_read(plan: Plan) -> str:
    """What a person writes to read a checkpoint; of several files, only those that use the function for it have it."""
    if len(plan.tree.parts) == 1:
        return "use read_checkpoint(path) for it"
    return (
        'what the script saved is the entry "script" of the mp_rank_00_model_states.pt in it, weights and optimizer state '
        "are for engine.load_checkpoint"
    )
