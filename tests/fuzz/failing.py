"""What a target raises."""


class FailedError(AssertionError):
    """A command, or the server, ended in another way than it says it can."""
