"""What one session does with sequences: nextval and its kin (manual 9.17;
``planner.functions.session.SequenceSystem``).

A value is given at once. Where the server has not stored yet how far the sequence is, the block notes that it owes
that (``Block.owe``) and pays before it commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from engine.catalog.reading import Reading
from planner.base.errors import SqlError
from planner.catalog import RelationDef, SequenceDef
from planner.catalog.rights import Rights

if TYPE_CHECKING:
    from engine.session.sequences.values import Counters
    from engine.session.transaction.work import Work


class HasCounters(Protocol):
    """A server that counts sequences."""

    sequences: Counters


class Drawing(Reading, Protocol):
    """A session that uses sequences."""

    @property
    def db(self) -> HasCounters:
        """The server that it is of."""

    @property
    def block(self) -> Work:
        """Its transaction."""

    @property
    def is_superuser(self) -> bool:
        """Whether the current user is one."""

    def is_others_temporary(self, relation: RelationDef) -> bool:
        """Tell whether a relation is a temporary one of another session."""


class SessionSequences:
    """The sequences as one session has used them."""

    __slots__ = ("_drawn", "_last", "_session")

    def __init__(self, session: Drawing) -> None:
        """Nothing was drawn yet."""
        self._session = session
        self._drawn: dict[int, int] = {}
        self._last = 0

    def _sequence(self, oid: int, letters: str) -> tuple[RelationDef, SequenceDef]:
        """Return a sequence on which the user has one of these privileges, if any. SqlError 42P01, 42809, 42501."""
        session = self._session
        relation = session.catalog.relation_by_oid(oid)
        if relation is None:
            raise SqlError("42P01", f"could not open relation with OID {oid}")
        if relation.sequence is None:
            raise SqlError("42809", f'"{relation.name}" is not a sequence')
        if letters and (
            session.withholds(relation)
            or not (
                session.is_superuser
                or Rights(session.rights_catalog, session.role).relation(relation, letters)
            )
        ):
            raise SqlError("42501", f"permission denied for sequence {relation.name}")
        if session.is_others_temporary(relation):
            raise SqlError("0A000", "cannot access temporary tables of other sessions")
        return relation, relation.sequence

    def _may_change(self, relation: RelationDef, function: str) -> None:
        if relation.persistence != "t" and self._session.block.is_read_only:
            raise SqlError("25006", f"cannot execute {function}() in a read-only transaction")

    def next(self, oid: int) -> int:
        """nextval(); a negative oid is that of an identity column's. SqlError 42P01, 42809, 42501, 25006, 2200H."""
        session = self._session
        relation, definition = self._sequence(abs(oid), "Uw" if oid > 0 else "")
        oid = relation.oid
        self._may_change(relation, "nextval")
        counter = session.db.sequences.of(relation)
        value = counter.next(definition, relation.name)
        if not counter.is_covered:
            session.block.owe(counter)
        self._drawn[oid] = value
        self._last = oid
        return value

    def current(self, oid: int) -> int:
        """currval(). SqlError 55000 before the session's first nextval, 42P01, 42809, 42501."""
        relation, _definition = self._sequence(oid, "Ur")
        if oid not in self._drawn:
            raise SqlError(
                "55000", f'currval of sequence "{relation.name}" is not yet defined in this session'
            )
        return self._drawn[oid]

    def last(self) -> int:
        """lastval(). SqlError 55000."""
        if self._last == 0 or self._session.catalog.relation_by_oid(self._last) is None:
            raise SqlError("55000", "lastval is not yet defined in this session")
        self._sequence(self._last, "Ur")
        return self._drawn[self._last]

    def set(self, oid: int, value: int, called: bool) -> None:
        """setval(). SqlError 22003, 42P01, 42809, 42501, 25006."""
        session = self._session
        relation, definition = self._sequence(oid, "w")
        self._may_change(relation, "setval")
        if not definition.minimum <= value <= definition.maximum:
            raise SqlError(
                "22003",
                f'setval: value {value} is out of bounds for sequence "{relation.name}" '
                f"({definition.minimum}..{definition.maximum})",
            )
        counter = session.db.sequences.of(relation)
        counter.set(definition, value, called)
        session.block.owe(counter)
        if called:
            self._drawn[oid] = value
            self._last = oid

    def state(self, oid: int) -> tuple[int, int, bool]:
        """Return what the row of a sequence shows: last_value, log_cnt, is_called. SqlError 42P01, 42809, 42501."""
        relation, _definition = self._sequence(oid, "Ur")
        counter = self._session.db.sequences.of(relation)
        return counter.value, max(counter.covered - counter.given, 0), counter.called

    def definition(self, oid: int) -> SequenceDef:
        """Return what a sequence counts. SqlError 42P01, 42809, 42501."""
        return self._sequence(oid, "rwU")[1]

    def forget(self) -> None:
        """DISCARD SEQUENCES."""
        self._drawn.clear()
        self._last = 0
