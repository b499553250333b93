from dataclasses import dataclass, field


@dataclass
class Model:
    kind: str = "gru"
    width: int = 20


@dataclass
class Train:
    epochs: int = 3
    batch_size: int = 8
    lr: float = 0.25
    clip: float = 0.22
    accumulate: int = 2
    drop_at: int = 2


@dataclass
class Run:
    seed: int = 11
    resume: str = ""
    path: str = "forecaster.pt"


@dataclass
class Settings:
    model: Model = field(default_factory=Model)
    train: Train = field(default_factory=Train)
    run: Run = field(default_factory=Run)


def override(settings, words):
    """Set "section.name=value" in the tree, in the type of the default."""
    for word in words:
        path, value = word.split("=", 1)
        section, name = path.split(".")
        part = getattr(settings, section)
        setattr(part, name, type(getattr(part, name))(value))
    return settings
