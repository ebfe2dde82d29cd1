"""What the catalog knows of a trigger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

TriggerEventKind: TypeAlias = Literal["i", "d", "u", "t"]
"""INSERT, DELETE, UPDATE, TRUNCATE, in the order in which PostgreSQL shows them."""


NO_TRANSITIONS: Final = ("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerDef:
    """A trigger of a table, as pg_trigger has it; it is kept with its table (``RelationDef.triggers``).

    ``timing``: b(efore), a(fter), i(nstead of). ``row``: FOR EACH ROW. ``events``: letters of
    ``TriggerEventKind``, in that order; ``attnums``: the columns of UPDATE OF, in the order written, none =
    any. ``when_sql``: the condition's canonical text over ``old`` and ``new``, "" for none. ``function``: its
    oid, a user's or PostgreSQL's own. ``enabled``: O(rigin and local), D(isabled), R(eplica), A(lways).
    ``constraint``: of a constraint trigger the constraint (of kind t), by oid, else 0; ``from_table``: the
    table of its FROM, else 0. ``old_table``, ``new_table``: the names of REFERENCING, "" for none.
    ``parent``: of a partition's, the one that it comes from.
    """

    oid: int
    name: str
    function: int
    timing: Literal["b", "a", "i"]
    row: bool
    events: str
    attnums: tuple[int, ...] = ()
    when_sql: str = ""
    args: tuple[str, ...] = ()
    enabled: Literal["O", "D", "R", "A"] = "O"
    constraint: int = 0
    from_table: int = 0
    old_table: str = ""
    new_table: str = ""
    parent: int = 0

    @property
    def type_bits(self) -> int:
        """pg_trigger.tgtype."""
        bits = sum(bit for letter, bit in (("i", 4), ("d", 8), ("u", 16), ("t", 32)) if letter in self.events)
        return bits | self.row | {"b": 2, "a": 0, "i": 64}[self.timing]

    @property
    def transitions(self) -> tuple[str, str]:
        """The names of REFERENCING: of the old rows and the new ones."""
        return self.old_table, self.new_table

    def fires(self, *, replica: bool) -> bool:
        """Whether it is on; ``replica``: the session_replication_role."""
        return self.enabled in ("RA" if replica else "OA")
