from .distributed import finish, is_first, start
from .stepper import Stepper

__all__ = ["Stepper", "finish", "is_first", "start"]
