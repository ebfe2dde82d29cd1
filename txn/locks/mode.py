"""Lock modes: what they mean, which go together, and what two of them add up to (D46, D47).

``IS``/``IX`` announce S/X locks on finer granules, ``S`` reads all of a granule, ``X`` changes it, ``SIX`` reads
all of it while changing parts. On index keys ``S`` reads a key's set of rows, ``IX`` enters or removes one row
under a key that many rows may share (D50), ``X`` owns the key (unique keys).

Modes are small integers, so that an entry can count its holders per mode in one integer (``ONE``) and test a
request against all of them with one ``&`` (``CONFLICTS``).
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

IS: Final = 0
IX: Final = 1
S: Final = 2
SIX: Final = 3
X: Final = 4

NAMES: Final[tuple[str, ...]] = ("IS", "IX", "S", "SIX", "X")
MODES: Final[dict[str, int]] = {name: mode for mode, name in enumerate(NAMES)}

_ = False
Y = True

COMPATIBLE: Final[tuple[tuple[bool, ...], ...]] = (
    #  IS IX S SIX X
    (Y, Y, Y, Y, _),  # IS
    (Y, Y, _, _, _),  # IX
    (Y, _, Y, _, _),  # S
    (Y, _, _, _, _),  # SIX
    (_, _, _, _, _),  # X
)
"""``COMPATIBLE[held][asked]``: may two transactions hold these at once? Symmetric."""

SUPREMUM: Final[tuple[tuple[int, ...], ...]] = (
    #  IS   IX   S    SIX  X
    (IS, IX, S, SIX, X),  # IS
    (IX, IX, SIX, SIX, X),  # IX
    (S, SIX, S, SIX, X),  # S
    (SIX, SIX, SIX, SIX, X),  # SIX
    (X, X, X, X, X),  # X
)
"""``SUPREMUM[held][asked]``: the weakest mode that grants both to one transaction."""

RowLock: TypeAlias = Literal["key share", "share", "no key update", "update"]

ROW_MODES: Final[dict[RowLock, int]] = {"key share": IS, "share": S, "no key update": SIX, "update": X}
"""PostgreSQL's row locks as modes of a row: the four conflict among each other as its manual says (13.3.2).

``share`` is also what reading a row takes, ``update`` what deleting it or changing a unique key of it takes, and
``no key update`` what other updates take. So those who only rely on a row's being there, and on its keys (foreign
keys: ``key share``), do not wait for updates of its other columns.
"""

ROW_CONFLICTS: Final[dict[RowLock, frozenset[RowLock]]] = {
    "key share": frozenset({"update"}),
    "share": frozenset({"no key update", "update"}),
    "no key update": frozenset({"share", "no key update", "update"}),
    "update": frozenset({"key share", "share", "no key update", "update"}),
}
"""The manual's table 13.3, which ``ROW_MODES`` has to reproduce."""

_BITS: Final = 20  # holders per mode and granule: at most 2**20 - 1
ONE: Final[tuple[int, ...]] = tuple(1 << (_BITS * mode) for mode in range(5))
CONFLICTS: Final[tuple[int, ...]] = tuple(
    sum(((1 << _BITS) - 1) << (_BITS * held) for held in range(5) if not COMPATIBLE[held][asked])
    for asked in range(5)
)
