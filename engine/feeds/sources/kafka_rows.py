"""Messages of a Kafka topic to rows: where key, value and the rest of a message go, and how they are read.

    format json     value {"id": 1, "v": "x"}      its members go to the columns of their names
    format text     value one thing                to the one column that is left, read as its type reads text
    format bytes    value bytes                    to the one column that is left, of type bytea
    key_column, partition_column, offset_column, timestamp_column: further columns

Texts read under PostgreSQL's own defaults, as COPY FROM reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import msgspec

from engine.feeds.sources.options import Options
from engine.feeds.sources.rows import RowReader, located, shown
from pgwire.codecs.copy import CopyOptions
from pgwire.codecs.copy.json import JsonDecoder
from pgwire.codecs.errors import DataError
from pgwire.codecs.text import decode
from planner.base.errors import SqlError
from planner.catalog import ColumnDef, RelationDef
from planner.facts import BYTEA, INT4, INT8, TIMESTAMPTZ, facts
from planner.types.facts import format_type
from txn.base.types import Key, Row

_ROLES: Final[Mapping[str, tuple[int, ...]]] = {
    "key_column": (), "partition_column": (INT4, INT8), "offset_column": (INT8,), "timestamp_column": (TIMESTAMPTZ,),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Message:
    """One message. ``time_us``: since 1970."""

    partition: int
    offset: int
    time_us: int | None
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column gets what. ``body``: those of the value."""

    roles: Mapping[str, str]
    body: tuple[str, ...]


def properties(options: Options) -> dict[str, str]:
    """Return the properties of Kafka's client that a source names. Raises SqlError 22023."""
    text = options.text("properties")
    if text is None:
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, str])
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SqlError(
            "22023", 'option "properties" must be a JSON object of strings', detail=f"{error}."
        ) from None


def layout(columns: Mapping[str, int], options: Options) -> Layout:
    """Return where messages go in a table with these columns (name to type).

    Raises SqlError 42703 for a column that is not there, 42804 for a type that cannot hold it, 42601 where
    the columns do not fit the format.
    """
    roles: dict[str, str] = {}
    for role, types in _ROLES.items():
        name = options.text(role)
        if name is None:
            continue
        if name not in columns:
            raise SqlError("42703", f'column "{name}" of option "{role}" does not exist')
        if name in roles.values():
            raise SqlError("42601", f'column "{name}" is named by several options')
        if types and columns[name] not in types:
            raise SqlError(
                "42804",
                f'column "{name}" of option "{role}" must be of type {" or ".join(map(format_type, types))}',
            )
        roles[role] = name
    body = tuple(name for name in columns if name not in roles.values())
    form = options.need("format")
    if form == "json":
        return Layout(roles, body)
    if len(body) != 1:
        raise SqlError(
            "42601",
            f"a KAFKA source of format {form} needs one column for the messages' values",
            detail=f"Besides those that options name there are {len(body)}.",
        )
    if form == "bytes" and columns[body[0]] != BYTEA:
        raise SqlError("42804", f'column "{body[0]}" must be of type bytea in a KAFKA source of format bytes')
    return Layout(roles, body)


class MessageReader:
    """Makes rows of one source's table out of messages of its topic."""

    def __init__(self, relation: RelationDef, options: Options, keys: Sequence[str]) -> None:
        """``keys``: the columns of the primary key that a row replaces another by; empty: all rows are new."""
        self._topic = options.need("topic")
        columns = {c.name: c.type.oid for c in relation.live}
        found = layout(columns, options)
        self._roles = {role: list(columns).index(name) for role, name in found.roles.items()}
        self._body = [list(columns).index(name) for name in found.body]
        self._form = options.need("format")
        self._reader = RowReader(relation, [c.attnum for c in relation.live])
        body: list[ColumnDef] = [c for c in relation.live if c.name in found.body]
        arrays = frozenset(i for i, c in enumerate(body) if facts().types[c.type.oid].category == "A")
        self._json = JsonDecoder(CopyOptions(format="json"), relation.name, found.body, arrays)
        by_name = {c.name: c.attnum - 1 for c in relation.live}
        self._key_at = [by_name[name] for name in keys]
        self._key_is_message_key = bool(keys) and tuple(keys) == (found.roles.get("key_column"),)
        self._binary_key = columns.get(found.roles.get("key_column", "")) == BYTEA

    def key_of(self, row: Row) -> Key:
        """Return the primary key in a row."""
        return tuple([row[position] for position in self._key_at])

    def rows(self, messages: Sequence[Message]) -> list[tuple[Row, bool]]:
        """Return a row for each message, and whether that is to be deleted: a message without a value, by its key.

        Raises DataError of the first that does not read, with topic, partition, offset and column.
        """
        gone = [bool(self._key_at) and message.value is None for message in messages]
        fields = [self._fields(message) for message in messages]

        def where(index: int, column: str | None, text: str | None) -> str:
            place = self._place(messages[index])
            return place if column is None else f'{place}, column {column}: "{shown(text or "")}"'

        if any(gone):  # NOT NULL columns may lack
            made = self._reader.values(fields, where)
            alive = [i for i, dead in enumerate(gone) if not dead]
            self._reader.check(
                [made[i] for i in alive], lambda index, *_: self._place(messages[alive[index]])
            )
        else:
            made = self._reader.rows(fields, where)
        return list(zip(made, gone, strict=True))

    def _fields(self, message: Message) -> list[str | None]:
        fields: list[str | None] = [None] * len(self._reader.columns)
        try:
            for role, position in self._roles.items():
                fields[position] = self._meta(role, message)
            if message.value is None:
                if self._key_at and (not self._key_is_message_key or message.key is None):
                    raise DataError(
                        "22004",
                        "a message without a value cannot be applied",
                        detail="It deletes a row by the message's key, and that is no primary key of the table.",
                    )
                return fields
            for position, text in zip(self._body, self._values(message.value), strict=True):
                fields[position] = text
        except DataError as error:
            error.where = None
            raise located(error, self._place(message)) from None
        return fields

    def _values(self, value: bytes) -> Sequence[str | None]:
        if self._form == "json":
            return self._json.row(value)
        return ["\\x" + value.hex() if self._form == "bytes" else decode(value)]

    def _meta(self, role: str, message: Message) -> str | None:
        if role == "key_column":
            if message.key is None:
                return None
            return "\\x" + message.key.hex() if self._binary_key else decode(message.key)
        if role == "timestamp_column":
            if message.time_us is None:
                return None
            seconds, us = divmod(message.time_us, 1_000_000)
            return datetime.fromtimestamp(seconds, UTC).replace(microsecond=us).isoformat(" ")
        return str(message.partition if role == "partition_column" else message.offset)

    def _place(self, message: Message) -> str:
        return f'topic "{self._topic}", partition {message.partition}, offset {message.offset}'
