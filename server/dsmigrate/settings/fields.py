"""The settings there are, each with what it accepts. Flags on the command line have the same names."""

from __future__ import annotations

from dataclasses import dataclass

from dsmigrate.settings.errors import SettingsError
from dsmigrate.settings.releases import check_release

Value = str | int


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its name as a flag without dashes, its allowed values (empty: free text), and its help."""

    name: str
    help: str
    choices: tuple[Value, ...] = ()
    kind: type[Value] = str

    def check(self, value: object, where: str) -> Value:
        """Return ``value`` if the setting accepts it.

        Raises SettingsError, which starts with ``where``: the flag, or the file, line and name.
        """
        allowed = f"; allowed: {', '.join(map(str, self.choices))}" if self.choices else ""
        if self.kind is bool:
            if not isinstance(value, bool):
                raise SettingsError(f"{where} {value!r} is not true or false")
            return value
        if isinstance(value, bool) or not isinstance(value, (str, int)) or not isinstance(value, self.kind):
            raise SettingsError(f"{where} {value!r} is not {'a number' if self.kind is int else 'text'}{allowed}")
        if self.choices and value not in self.choices:
            raise SettingsError(f"{where} {value!r} does not exist{allowed}")
        if value == "":
            raise SettingsError(f"{where} is empty")
        return check_release(value, where) if self.name == "target-version" and isinstance(value, str) else value


SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("zero-stage", "ZeRO stage of the emitted config; default 2.", (0, 1, 2, 3), int),
        Setting(
            "offload",
            "Where ZeRO keeps optimizer states, at stage 3 parameters too; default none.",
            ("none", "cpu", "nvme"),
        ),
        Setting("nvme-path", "Directory on an NVMe disk for --offload nvme."),
        Setting("optimizer", "Keep the script's optimizer (default), or let the config build it.", ("keep", "config")),
        Setting(
            "precision", "Keep the script's precision (default), or train in half precision.", ("keep", "fp16", "bf16")
        ),
        Setting(
            "checkpoints",
            "Checkpoints stay torch.save files (default), or become DeepSpeed's own directories.",
            ("files", "engine"),
        ),
        Setting("params", "Size of the model, such as 7b: with --gpu-memory it chooses stage and offload."),
        Setting("gpu-memory", "Memory of one GPU in GiB, for --params.", kind=int),
        Setting("gpus", "Number of GPUs, for --params; default 1.", kind=int),
        Setting(
            "loss",
            "How the loss of a language model is computed, for --params; default upcast.",
            ("upcast", "shifted", "plain", "chunked", "fused"),
        ),
        Setting("config", "An existing DeepSpeed config to fit the script to."),
        Setting("config-name", "File name of the emitted config; default ds_config.json."),
        Setting("target-version", "DeepSpeed release the result is for; default the newest known."),
        Setting(
            "with-launchers", "Change shell scripts, Makefiles, READMEs that start a converted script too.", kind=bool
        ),
        Setting(
            "launcher",
            "With --with-launchers: leave torchrun lines alone (default), or start with deepspeed.",
            ("keep", "deepspeed"),
        ),
    )
}
