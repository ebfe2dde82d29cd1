"""What leaves the statements around it: EXIT, CONTINUE, RETURN."""

from __future__ import annotations

from typing import Final, NamedTuple


class Signal(NamedTuple):
    """What leaves the statements around: ``kind`` exit, continue or return; ``label`` "" for the innermost loop."""

    kind: str
    label: str = ""


RETURN: Final = Signal("return")


def after(signal: Signal | None, label: str) -> tuple[bool, Signal | None]:
    """Return whether a loop with ``label`` ends after its body signalled, and what it then signals itself."""
    if signal is None:
        return False, None
    if signal.kind == "return":
        return True, signal
    if signal.label and signal.label != label:
        return True, signal
    return signal.kind == "exit", None
