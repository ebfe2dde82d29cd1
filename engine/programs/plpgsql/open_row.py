"""NEW and OLD while a trigger function runs: rows whose fields are at hand, packed only where a statement
wants the whole.

new.n + 1        Source(new, 2)     cells[2]
to_jsonb(new)    Source(new)        the cells as a value of the table's row type
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgwire.codecs.users.composite import pack_row, record_of
from planner.base.errors import SqlError
from planner.catalog import Catalog, ColumnDef
from planner.query import OutputColumn


class RowForm:
    """How rows of a table are values of its row type. It holds as long as the table has the same version."""

    __slots__ = ("_oids", "_slots", "_width", "columns", "names", "outputs")

    def __init__(self, catalog: Catalog, row_type: int) -> None:
        """``row_type``: the oid of the type of a relation's rows. Raises SqlError 42704 where it is none."""
        row = catalog.row_type(row_type)
        if row is None:
            raise SqlError("42704", f"type with OID {row_type} does not exist")
        self.columns: tuple[ColumnDef, ...] = row.live
        self.names = {column.name: at for at, column in enumerate(self.columns)}
        self.outputs = tuple(OutputColumn(name=c.name, type=c.declared) for c in self.columns)
        self._slots = row.slots
        self._oids = tuple(c.type.oid for c in self.columns)
        self._width = len(row.columns)

    def open(self, value: bytes | None) -> OpenRow | None:
        """Return a value of the row type as a row, None for NULL."""
        if value is None:
            return None
        names = tuple(c.name for c in self.columns)
        return OpenRow(
            self, record_of(value, self._slots, tuple(c.declared.oid for c in self.columns), names)
        )

    def pack(self, cells: Sequence[Any]) -> bytes:
        """Return a row as a value of the row type."""
        return pack_row(cells, self._slots, self._oids, self._width)


class OpenRow:
    """What NEW or OLD holds; ``cells`` in the order of ``RowForm.columns``."""

    __slots__ = ("cells", "form")

    def __init__(self, form: RowForm, cells: Sequence[Any]) -> None:
        self.form = form
        self.cells = tuple(cells)

    def __getitem__(self, at: int) -> Any:
        return self.cells[at]

    @property
    def packed(self) -> bytes:
        """The row as a value of its row type."""
        return self.form.pack(self.cells)

    def with_cell(self, at: int, value: Any) -> OpenRow:
        """Return the row with another value in one place."""
        return OpenRow(self.form, (*self.cells[:at], value, *self.cells[at + 1 :]))
