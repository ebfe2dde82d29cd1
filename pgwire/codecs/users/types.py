"""Users' types: how the values of types that are made by CREATE TYPE read and print.

A type's structure (an enum, an array of an enum) never changes and belongs to its oid, so its codec is
registered once per process (``pgwire.codecs.registry``), for as long as somebody has the type. What changes
are names: labels of enums can be added and renamed. They come with the settings, as one state of the catalog
has them:

    CodecSettings.types ── UserTypes ── oid ── EnumLabels      rank 2**40 <-> 'sad', rank 2**41 <-> 'happy'
                                         └─ oid ── RowShape        attributes of a composite type: names, types, places

The value of an enum is its label's rank, an integer: it is compared, indexed and stored as such. Under
``STORED`` it prints, and is read, as that integer: so texts are kept that are to outlast a renamed label.
Where settings say nothing (messages, whatever works for no session) it is the latest committed state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from pgwire.codecs.errors import DataError
from pgwire.codecs.invalid import quoting
from pgwire.codecs.system import RecordValue
from pgwire.codecs.users.composite import RowShape, values_of
from pgwire.give_way import paced
from pgwire.long.dicts import gathered

if TYPE_CHECKING:
    from pgwire.codecs.settings import CodecSettings

MAX_LABEL_BYTES = 63


class Label(Protocol):
    """A label of an enum."""

    @property
    def rank(self) -> int:
        """The value that it stands for."""

    @property
    def label(self) -> str:
        """Its name."""


@dataclass(frozen=True, slots=True)
class EnumLabels:
    """The labels of one enum: ``name`` is the type's, as messages show it.

    ``unsafe``: of these, those that the running transaction has added to a type of others; they print, and
    are not read, before the commit. Labels are gone through when the first value is read or printed, not
    whenever the catalog changes. Doing so gives way.
    """

    name: str
    labels: Sequence[Label]
    unsafe: frozenset[str] = frozenset()
    _by_rank: dict[int, str] = field(default_factory=dict, init=False, repr=False, compare=False)
    _by_label: dict[str, int] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[type[EnumLabels], tuple[str, Sequence[Label], frozenset[str]]]:
        """Be pickled without what is found again."""
        return EnumLabels, (self.name, self.labels, self.unsafe)

    def label_of(self, rank: int) -> str | None:
        """Return the label of a rank, if there is one."""
        return (self._by_rank or self._ranks()).get(rank)

    def rank_of(self, label: str) -> int | None:
        """Return the rank of a label that may be read, if there is one."""
        return (self._by_label or self._names()).get(label)

    def _ranks(self) -> dict[int, str]:
        found: dict[int, str] = gathered((label.rank, label.label) for label in paced(self.labels))
        object.__setattr__(self, "_by_rank", found)  # all at once: others may have asked meanwhile
        return found

    def _names(self) -> dict[str, int]:
        labels = ((one.label, one.rank) for one in paced(self.labels) if one.label not in self.unsafe)
        found: dict[str, int] = gathered(labels)
        object.__setattr__(self, "_by_label", found)
        return found

    def check(self, label: str) -> None:
        """Raise DataError 55P04 for a label that is not to be used yet."""
        if label in self.unsafe:
            raise DataError(
                "55P04",
                f'unsafe use of new value "{label}" of enum type {self.name}',
                hint="New enum values must be committed before they can be used.",
            )


class Shapes(dict[int, RowShape]):
    """Composite types by oid, to be asked as a function: what another process gets of them."""

    def __call__(self, oid: int) -> RowShape | None:
        """Return the type's attributes, None if it is no composite type."""
        return self.get(oid)


class UserTypes:
    """What values of users' types are called, in one state of the catalog.

    Equal as long as no type is changed, so that what was made for settings stays good for all values but
    those that have composite types in them: which attributes the rows of tables have changes more often.
    """

    __slots__ = ("enums", "row", "space")

    def __init__(
        self, enums: Mapping[int, EnumLabels], row: Callable[[int], RowShape | None], space: int = 0
    ) -> None:
        """``enums``: by type oid; ``row``: from a composite type's oid to its attributes; ``space``: whose
        types these are.
        """
        self.enums = enums
        self.row = row
        self.space = space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UserTypes) and self.enums is other.enums and self.space == other.space

    def __hash__(self) -> int:
        return hash((id(self.enums), self.space))


STORED = UserTypes({}, lambda oid: None)
"""Values in the form in which stored texts have them."""


class Names:
    """What the session that runs calls objects of the catalog.

    It is asked when a message is made, or a value is printed, so that nothing has to be said before each
    statement, and what prints for one session prints for another. Each gives None for what it does not know,
    and where no session runs.

    Attributes:
        find: what messages call a user's type: its schema before it where the search path has another, or
        none, of that name. show: from a reg* type and a value of it to its text. read: from a reg* type and a
        text to the value; it raises what PostgreSQL does for a name that nothing has.
    """

    __slots__ = ("find", "read", "show")

    def __init__(self) -> None:
        """Nothing is known."""
        self.find: Callable[[int], str | None] = lambda oid: None
        self.show: Callable[[int, int], str | None] = lambda oid, value: None
        self.read: Callable[[int, str], int | None] = lambda oid, text: None


NAMES: Final = Names()


def called(oid: int, otherwise: str) -> str:
    """Return what messages call a user's type, ``otherwise`` where that is not known."""
    found = NAMES.find(oid)
    return otherwise if found is None else found


_latest: dict[int, EnumLabels] = {}
"""The latest committed labels of the types of all databases."""
_latest_rows: dict[int, Callable[[int], RowShape | None]] = {}
"""Database -> the latest committed attributes of its composite types."""


def set_latest(types: UserTypes) -> None:
    """Say what values of ``types`` are called from now on where settings say nothing."""
    _latest.update(types.enums)
    _latest_rows[types.space] = types.row


def forget(oid: int) -> None:
    """What a type was called last is nobody's affair any more."""
    _latest.pop(oid, None)


def forget_space(space: int) -> None:
    """A database is no more."""
    _latest_rows.pop(space, None)


def latest_row(oid: int) -> RowShape | None:
    """Return the latest committed attributes of a composite type."""
    return next((shape for find in _latest_rows.values() if (shape := find(oid)) is not None), None)


def row_shape(oid: int, settings: CodecSettings) -> RowShape:
    """Return the attributes of a composite type. Raises DataError 42704 where it is gone."""
    types = settings.types
    own = None if types is None or types is STORED else types.row(oid)
    found = own or latest_row(oid)
    if found is None:
        raise gone(oid)
    return found


def row_record(value: bytes, oid: int, settings: CodecSettings) -> RecordValue:
    """Return a value of a composite type as an anonymous record that knows its columns."""
    shape = row_shape(oid, settings)
    return RecordValue(values_of(value, shape), shape.types, shape.names)


def _labels(oid: int, types: UserTypes | None) -> EnumLabels:
    found = (_latest if types is None else types.enums).get(oid)
    if found is None:
        raise gone(oid)
    return found


def gone(oid: int) -> DataError:
    """Return what values of a type meet that was dropped, where somebody still has some: rows of a cursor WITH HOLD."""
    return DataError("42704", f"type with OID {oid} does not exist")


def enum_parser(oid: int, settings: CodecSettings) -> Callable[[str], int]:
    """Return the function from label to rank; it raises DataError 22P02, 55P04, 42704 where the enum is gone."""
    types = settings.types
    if types is STORED:
        return int

    def parse(text: str) -> int:
        labels = _labels(oid, types)
        rank = labels.rank_of(text)
        if rank is None:
            labels.check(text)
            name = called(oid, labels.name)
            raise DataError("22P02", quoting(f"invalid input value for enum {name}: ", text))
        return rank

    return parse


def enum_printer(oid: int, settings: CodecSettings) -> Callable[[int], str]:
    """Return the function from rank to label; it raises DataError 22P03 for a rank without a label, 42704
    where the enum is gone.
    """
    types = settings.types
    if types is STORED:
        return str

    def show(rank: int) -> str:
        label = _labels(oid, types).label_of(rank)
        if label is None:
            raise DataError("22P03", f"invalid internal value for enum: {rank}")
        return label

    return show
