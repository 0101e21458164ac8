"""What is wrong with a trigger, in words for the one who has to mend it."""

from dataclasses import dataclass

_LONGEST_QUOTE = 80


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing wrong with one trigger.

    Attributes:
        field: The path inside the trigger, such as `metadata.url`.
        problem: What is wrong, and what it does.
        mend: What to write instead.
    """

    field: str
    problem: str
    mend: str

    def __str__(self) -> str:
        end = "" if self.mend.endswith("?") else "."
        return f"{self.field}: {self.problem}. Mend: {self.mend}{end}"


def quote(text: str | None) -> str:
    """A value from a manifest as it may stand in a message: on one line and not too long."""
    shown = text or ""
    return repr(shown if len(shown) <= _LONGEST_QUOTE else shown[: _LONGEST_QUOTE - 3] + "...")
