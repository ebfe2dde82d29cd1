"""The options of each kind of source, as data: what CREATE SOURCE checks, what docs/guide/sources.md lists.

Values are kept as they were written (``SourceDef.options``); ``Options`` reads them, defaults filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from planner.base.errors import Span, SqlError

_TRUE: Final = ("true", "on", "1", "yes")
_FALSE: Final = ("false", "off", "0", "no")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What one option takes. ``default`` as it would be written; None with ``required`` False: nothing."""

    kind: Literal["text", "int", "bool", "choice", "char"]
    help: str
    default: str | None = None
    required: bool = False
    minimum: int = 0
    maximum: int = 1 << 62
    choices: tuple[str, ...] = ()


_COMMON: Final[Mapping[str, Rule]] = {
    "max_batch_rows": Rule(kind="int", default="10000", minimum=1, maximum=100_000,
                           help="rows of one batch, which is one transaction"),
    "max_rows_per_second": Rule(kind="int", default="0", maximum=10_000_000, help="0: as fast as they come"),
    "poll_interval_ms": Rule(kind="int", default="200", minimum=10, maximum=3_600_000,
                             help="how long to wait when there was nothing new"),
}  # fmt: skip

_ENVELOPE: Final = Rule(
    kind="choice",
    choices=("append", "upsert"),
    default="append",
    help="append: every row is a new one; upsert: a row replaces the one with its primary key",
)

RULES: Final[Mapping[str, Mapping[str, Rule]]] = {
    "rate": {
        **_COMMON,
        "rows_per_second": Rule(kind="int", default="1", minimum=1, maximum=1_000_000, help="how fast"),
        "rows": Rule(kind="int", default="0", help="how many in all; 0: without end"),
    },
    "files": {
        **_COMMON,
        "path": Rule(kind="text", required=True, help="the directory, or folder of an object store (s3://, gs://), below an entry of the setting server_files"),
        "format": Rule(kind="choice", choices=("csv", "json", "parquet"), required=True, help="of every file"),
        "pattern": Rule(kind="text", default="*", help="file names that count, with * and ?"),
        "envelope": _ENVELOPE,
        "settle_ms": Rule(kind="int", default="1000", maximum=3_600_000,
                          help="a file is complete once its size and time have stayed the same for so long"),
        "spark_min_bytes": Rule(kind="int", default=str(256 << 20),
                                help="files with so many bytes together are read by Spark's tasks, in one batch"),
        "after": Rule(kind="choice", choices=("keep", "move", "delete"), default="keep",
                      help="what becomes of a file that has been read and committed"),
        "move_to": Rule(kind="text", help="with after = move: where to, below an entry of server_files"),
        "header": Rule(kind="bool", default="false", help="csv: the first line names the columns, which it must match"),
        "delimiter": Rule(kind="char", help="csv"),
        "null": Rule(kind="text", help="csv: how NULL is written"),
        "quote": Rule(kind="char", help="csv"),
        "escape": Rule(kind="char", help="csv"),
    },
    "postgres": {
        **_COMMON,
        "connection": Rule(kind="text", required=True, help="postgresql://..., of the database that is read"),
        "publication": Rule(kind="text", required=True, help="which of its publications"),
        "slot": Rule(kind="text", help="name of the replication slot to create; default: made from the source's"),
        "schema": Rule(kind="text", help="where the tables go; default: the current schema"),
    },
    "kafka": {
        **_COMMON,
        "brokers": Rule(kind="text", required=True, help="host:port, ..."),
        "topic": Rule(kind="text", required=True, help="which topic"),
        "format": Rule(kind="choice", choices=("json", "text", "bytes"), default="json", help="of every message's value"),
        "start": Rule(kind="choice", choices=("earliest", "latest"), default="earliest", help="where to begin"),
        "envelope": _ENVELOPE,
        "key_column": Rule(kind="text", help="the column that gets the message's key"),
        "partition_column": Rule(kind="text", help="the column that gets its partition"),
        "offset_column": Rule(kind="text", help="the column that gets its offset"),
        "timestamp_column": Rule(kind="text", help="the column that gets its timestamp"),
        "properties": Rule(kind="text", help="of Kafka's client, as a JSON object of strings"),
    },
}  # fmt: skip


class Options:
    """The options of one source, read."""

    __slots__ = ("_kind", "_values")

    def __init__(self, kind: str, values: Mapping[str, str]) -> None:
        """``values``: what ``check`` returned."""
        self._kind = kind
        self._values = values

    def text(self, name: str) -> str | None:
        """Return an option's value, its default, or None."""
        value = self._values.get(name)
        return RULES[self._kind][name].default if value is None else value

    def need(self, name: str) -> str:
        """Return the value of an option that has one."""
        value = self.text(name)
        if value is None:
            raise AssertionError(f"option {name} of a {self._kind} source has no value")
        return value

    def int(self, name: str) -> int:
        """Return a number."""
        return int(self.need(name))

    def bool(self, name: str) -> bool:
        """Return a Boolean."""
        return self.need(name).lower() in _TRUE


def check(kind: str, given: Sequence[tuple[str, str | None, Span]]) -> dict[str, str]:
    """Return the options of a new source by name.

    Raises SqlError 22023 for one that is unknown, given twice, missing, or has a value that it cannot have.
    """
    rules = RULES[kind]
    found: dict[str, str] = {}
    for name, value, span in given:
        rule = rules.get(name)
        if rule is None:
            raise SqlError(
                "22023",
                f'unrecognized option "{name}" of a {kind.upper()} source',
                hint=f"Its options are {', '.join(sorted(rules))}.",
                span=span,
            )
        if name in found:
            raise SqlError("22023", f'option "{name}" specified more than once', span=span)
        if value is None and rule.kind == "bool":
            value = "true"
        if value is None:
            raise SqlError("22023", f'option "{name}" requires a value', span=span)
        found[name] = _checked(name, value, rule, span)
    for name, rule in rules.items():
        if rule.required and name not in found:
            raise SqlError("22023", f'a {kind.upper()} source requires the option "{name}" ({rule.help})')
    return found


def _checked(name: str, value: str, rule: Rule, span: Span) -> str:
    if rule.kind == "int":
        if not value.isascii() or not value.isdigit() or not rule.minimum <= int(value) <= rule.maximum:
            raise SqlError(
                "22023",
                f'invalid value for option "{name}": "{value}"',
                detail=f"It is a number from {rule.minimum} to {rule.maximum}.",
                span=span,
            )
    elif rule.kind == "bool":
        if value.lower() not in (*_TRUE, *_FALSE):
            raise SqlError("22023", f'option "{name}" requires a Boolean value', span=span)
    elif rule.kind == "choice":
        value = value.lower()
        if value not in rule.choices:
            raise SqlError(
                "22023",
                f'invalid value for option "{name}": "{value}"',
                detail=f"It is one of {', '.join(rule.choices)}.",
                span=span,
            )
    elif rule.kind == "char":
        if len(value.encode()) != 1:
            raise SqlError("22023", f'option "{name}" must be a single one-byte character', span=span)
    elif not value and name != "null":
        raise SqlError("22023", f'option "{name}" requires a value', span=span)
    return value
