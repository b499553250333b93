"""What other programs call the keys of a config: ``schemas/deepspeed/elsewhere.toml``, and the fields of Accelerate."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from dsmigrate.schemas_location import schema_toml


@functools.cache
def arguments() -> Mapping[str, Sequence[str]]:
    """Return the arguments of the Transformers Trainer that say what a key says, by the path of the key."""
    found: Mapping[str, Sequence[str]] = schema_toml("deepspeed/elsewhere.toml")["transformers"]
    return found


@functools.cache
def only_of_trainer() -> frozenset[str]:
    """Return arguments that show that the Transformers Trainer is what trains."""
    return frozenset(schema_toml("deepspeed/elsewhere.toml")["trainer"]["only"])


@functools.cache
def of_trainer() -> frozenset[str]:
    """Return arguments that the Transformers Trainer takes, which other scripts may take as well."""
    return only_of_trainer().union(*arguments().values(), schema_toml("deepspeed/elsewhere.toml")["trainer"]["usual"])


@functools.cache
def meant_by() -> Mapping[str, str]:
    """Return the path of the key that each name of another program stands for, of several the first."""
    found: dict[str, str] = {}
    for path, names in arguments().items():
        for name in () if path.endswith((".type", ".enabled")) else names:
            found.setdefault(name, path)
    fields = schema_toml("deepspeed/forms.toml")["accelerate"]["fields"]
    found |= {name: field["path"] for name, field in fields.items()}
    found |= schema_toml("deepspeed/elsewhere.toml")["deepspeed"]
    return found
