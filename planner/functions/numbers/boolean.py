"""boolean: casts. Comparisons are in ``compare``; AND, OR, NOT are the evaluator's own."""

from __future__ import annotations

from planner.functions.registry import REGISTRY


def _register() -> None:
    python = REGISTRY.python
    python("bool(int4)", lambda x: x != 0)
    python("int4(bool)", int)
    python("text(bool)", lambda x: "true" if x else "false")
    python("booland_statefunc(bool,bool)", lambda x, y: x and y)
    python("boolor_statefunc(bool,bool)", lambda x, y: x or y)


_register()
