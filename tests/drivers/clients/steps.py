"""What the client programs share: named steps, printed as they pass.

```
python sqlalchemy_orm.py postgresql://postgres@127.0.0.1:5432/postgres
ok reflection
FAILED alembic: ...        and exit status 1; the steps after it still run
```
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

E = TypeVar("E", bound=Exception)

STEPS: list[tuple[str, Callable[[], None]]] = []


class Address:
    """The server's address, taken apart for clients that want it in pieces."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 5432
        self.user = parts.username or "postgres"
        self.database = parts.path.lstrip("/") or "postgres"

    def with_scheme(self, scheme: str) -> str:
        return f"{scheme}://{self.user}@{self.host}:{self.port}/{self.database}"


ADDRESS = Address(sys.argv[1])


def step(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function as a step; steps run in the order they are written in."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        STEPS.append((name, function))
        return function

    return register


def same(got: object, expected: object) -> None:
    """Fail unless both are equal, showing both."""
    if got != expected:
        raise AssertionError(f"\n  got      {got!r}\n  expected {expected!r}")


def raised(kind: type[E], function: Callable[[], object]) -> E:
    """Call ``function``, which must fail with ``kind``, and return the exception."""
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def run() -> None:
    """Run every step and leave with status 1 if one failed."""
    failed = False
    for name, function in STEPS:
        try:
            function()
        except Exception:  # whatever a client raises is what this step found
            failed = True
            print(f"FAILED {name}: {traceback.format_exc()}", flush=True)
        else:
            print(f"ok {name}", flush=True)
    sys.exit(1 if failed else 0)
