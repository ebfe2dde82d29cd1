"""What the catalog knows of a policy of row-level security."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

PolicyCommand: TypeAlias = Literal["*", "r", "a", "w", "d"]
"""ALL, SELECT, INSERT, UPDATE, DELETE, as pg_policy.polcmd has them."""

COMMAND_WORDS: Final[dict[PolicyCommand, str]] = {
    "*": "ALL", "r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE",
}  # fmt: skip
EVERYBODY: Final = 0
"""PUBLIC among the roles of a policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDef:
    """A policy of a table, as pg_policy has it; it is kept with its table (``RelationDef.policies``).

    ``roles``: whom it is about, by oid, in the order written; EVERYBODY alone for PUBLIC. ``using_sql``,
    ``check_sql``: the canonical texts of USING and WITH CHECK over the table's columns, "" for none.
    ``depends_on``: the relations that their sub-selects name.
    """

    oid: int
    name: str
    command: PolicyCommand = "*"
    permissive: bool = True
    roles: tuple[int, ...] = (EVERYBODY,)
    using_sql: str = ""
    check_sql: str = ""
    depends_on: tuple[int, ...] = ()

    def is_about(self, command: PolicyCommand, roles: frozenset[int]) -> bool:
        """Whether it counts for a kind of access by somebody who has the rights of ``roles``."""
        if self.command not in ("*", command):
            return False
        return EVERYBODY in self.roles or not roles.isdisjoint(self.roles)


class HasPolicies(Protocol):
    """A relation, as far as row-level security goes."""

    @property
    def row_security(self) -> bool:
        """Whether its policies count."""

    @property
    def force_row_security(self) -> bool:
        """Whether they count for its owner, too."""

    @property
    def policies(self) -> tuple[PolicyDef, ...]:
        """Its policies, by name."""


def security_of(relation: HasPolicies) -> tuple[bool, bool, tuple[PolicyDef, ...]]:
    """Return all that decides which rows of a relation somebody sees."""
    return relation.row_security, relation.force_row_security, relation.policies
