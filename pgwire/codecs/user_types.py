"""Users' types: how the values of types that are made by CREATE TYPE read and print.

A type's structure (an enum, an array of an enum) never changes and belongs to its oid, so its codec is registered once per
process (``pgwire.codecs.registry``). What changes are names: labels of enums can be added and renamed. They come
with the settings, as one state of the catalog has them:

    CodecSettings.types ── UserTypes ── oid ── EnumLabels      rank 2**40 <-> 'sad', rank 2**41 <-> 'happy'

The value of an enum is its label's rank, an integer: it is compared, indexed and stored as such. Under ``STORED`` it prints,
and is read, as that integer: so texts are kept that are to outlast a renamed label. Where settings say nothing
(messages, whatever works for no session) it is the latest committed state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pgwire.codecs.errors import DataError

if TYPE_CHECKING:
    from pgwire.codecs.settings import CodecSettings

MAX_LABEL_BYTES = 63


@dataclass(frozen=True, slots=True)
class EnumLabels:
    """The labels of one enum: ``name`` is the type's, as messages show it."""

    name: str
    by_rank: Mapping[int, str]
    by_label: Mapping[str, int]


class UserTypes:
    """What values of users' types are called, in one state of the catalog. Compared by identity."""

    __slots__ = ("enums",)

    def __init__(self, enums: Mapping[int, EnumLabels]) -> None:
        """``enums``: by type oid."""
        self.enums = enums


STORED = UserTypes({})
"""Values in the form in which stored texts have them."""


_latest: dict[int, EnumLabels] = {}
"""The latest committed labels of the types of all databases."""


def set_latest(types: UserTypes) -> None:
    """Say what values of ``types`` are called from now on where settings say nothing."""
    _latest.update(types.enums)


def enum_parser(oid: int, settings: CodecSettings) -> Callable[[str], int]:
    """Return the function from label to rank; it raises DataError 22P02."""
    types = settings.types
    if types is STORED:
        return int

    def parse(text: str) -> int:
        labels = (_latest if types is None else types.enums)[oid]
        rank = labels.by_label.get(text)
        if rank is None:
            raise DataError("22P02", f'invalid input value for enum {labels.name}: "{text}"')
        return rank

    return parse


def enum_printer(oid: int, settings: CodecSettings) -> Callable[[int], str]:
    """Return the function from rank to label; it raises DataError 22P03 for a rank without a label."""
    types = settings.types
    if types is STORED:
        return str

    def show(rank: int) -> str:
        label = (_latest if types is None else types.enums)[oid].by_rank.get(rank)
        if label is None:
            raise DataError("22P03", f"invalid internal value for enum: {rank}")
        return label

    return show
