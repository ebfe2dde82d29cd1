"""CREATE and ALTER SEQUENCE, serial types and identity columns: options to a checked ``SequenceDef`` (init_params).

    CREATE SEQUENCE s INCREMENT -1           int8, -1 down to -9223372036854775808, starts at -1
    a smallserial                            int2, 1 up to 32767, owned by the column

Where a sequence stands is not known here: that it lies within new bounds is checked when ALTER SEQUENCE runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, Literal

from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError
from planner.bind.context import BindContext
from planner.bind.define.table.options import boolean_option
from planner.bind.define.table.placing import creation_schema, persistence_of
from planner.catalog import ColumnDef, RelationDef, SequenceDef
from planner.catalog.named_oids import relations_in_text
from planner.catalog.relation_kinds import RELATION_KINDS, SEQUENCE_OWNERS
from planner.conversion.type_names import resolve_type
from planner.facts import INT2, INT4, INT8
from planner.types.facts import format_type

NO_IDENTITY_TYPE: Final = "identity column type must be smallint, integer, or bigint"
BOUNDS: Mapping[int, tuple[int, int]] = {
    INT2: (-(2**15), 2**15 - 1),
    INT4: (-(2**31), 2**31 - 1),
    INT8: (-(2**63), 2**63 - 1),
}
SERIAL_TYPES: Mapping[str, int] = {
    "smallserial": INT2, "serial2": INT2, "serial": INT4, "serial4": INT4, "bigserial": INT8, "serial8": INT8,
}  # fmt: skip


def bind_create_sequence(context: BindContext, node: ast.CreateSequence) -> st.CreateSequence:
    """CREATE SEQUENCE. Raises SqlError 22023, 42601, 42P01, 42703, 42809, 3F000, 42P16."""
    options = options_by_name(node.options)
    if "restart" in options or "sequence_name" in options:
        word = "RESTART" if "restart" in options else "SEQUENCE NAME"
        raise SqlError("42601", f"invalid sequence option {word}", span=_span(options, word))
    definition = new_definition(options, None)
    schema = creation_schema(context, node.relation)
    return st.CreateSequence(
        schema=schema,
        name=node.relation.name,
        if_not_exists=node.if_not_exists,
        definition=definition,
        owned_by=_owned_by(context, options),
        persistence=persistence_of(node.relation, schema),
    )


def bind_alter_sequence(context: BindContext, node: ast.AlterSequence) -> st.AlterSequence | st.Skip:
    """ALTER SEQUENCE ... options. Raises as ``bind_create_sequence``, and 0A000 to give an identity column's away."""
    relation = context.find_relation(node.relation.schema, node.relation.name)
    if relation is None and node.if_exists:
        return st.Skip(notice=f'relation "{node.relation.name}" does not exist, skipping')
    relation = context.relation(node.relation.schema, node.relation.name, catalog=node.relation.catalog)
    if relation.sequence is None:
        raise SqlError("42809", f'"{relation.name}" is not a sequence')
    options = options_by_name(node.options)
    if "sequence_name" in options:
        raise SqlError("42601", "invalid sequence option SEQUENCE NAME", span=options["sequence_name"].span)
    definition, restarts = changed_definition(options, relation.sequence)
    owned_by = _owned_by(context, options, relation)
    if owned_by is not None and relation.sequence.internal:
        owner = context.catalog.relation_by_oid(relation.sequence.owner_table)
        raise SqlError(
            "0A000",
            "cannot change ownership of identity sequence",
            detail=f'Sequence "{relation.name}" is linked to table "{owner.name if owner else ""}".',
        )
    return st.AlterSequence(
        sequence=relation.oid, definition=definition, restarts=restarts, owned_by=owned_by
    )


# --- columns that draw from sequences ---------------------------------------------------------------


def serial_sequence(type_oid: int) -> st.ColumnSequence:
    """Return the sequence of a serial column."""
    return st.ColumnSequence(new_definition({}, type_oid))


def identity_sequence(options: Sequence[ast.Option], type_oid: int) -> st.ColumnSequence:
    """Return the sequence of an identity column. Raises SqlError 22023, 42601."""
    if type_oid not in BOUNDS:
        raise SqlError("22023", NO_IDENTITY_TYPE)
    by_name = options_by_name(options, OF_IDENTITY)
    for word in ("as", "owned_by", "restart"):
        if word in by_name:
            raise SqlError("42601", "conflicting or redundant options", span=by_name[word].span)
    name = by_name.pop("sequence_name", None)
    given = None
    if name is not None:
        if not isinstance(name.value, tuple):
            raise AssertionError(f"SEQUENCE NAME is {type(name.value).__name__}, not a name")
        given = name.value[-1]
    persistence: Literal["p", "u"] | None = None
    for word, which in _PERSISTENCE.items():
        option = by_name.get(word)
        if option is not None:
            if persistence is not None:
                raise SqlError("42601", "conflicting or redundant options", span=option.span)
            persistence = which
    return st.ColumnSequence(new_definition(by_name, type_oid), given, persistence)


def drawn_from(column: ColumnDef) -> int | None:
    """Return the oid of the sequence from which a column's default draws its values, None for other defaults."""
    found = relations_of_default(column)
    return found[0] if found else None


def relations_of_default(column: ColumnDef) -> list[int]:
    """Return the oids of the relations that a column's default names (``nextval('s'::regclass)``)."""
    return relations_in_text(column.default_sql)


# --- options ----------------------------------------------------------------------------------------


_PERSISTENCE: Final[Mapping[str, Literal["p", "u"]]] = {"logged": "p", "unlogged": "u"}

OPTIONS: Final = frozenset((
    "as", "cache", "cycle", "increment", "maxvalue", "minvalue", "owned_by", "restart", "sequence_name", "start",
))  # fmt: skip
"""Those of CREATE and ALTER SEQUENCE, as the grammar calls them."""

OF_IDENTITY: Final = OPTIONS | frozenset(_PERSISTENCE)
"""Those of an identity column that is made."""


def options_by_name(
    options: Sequence[ast.Option], known: AbstractSet[str] = OPTIONS
) -> dict[str, ast.Option]:
    """Return options by their names. Raises SqlError 42601 for one that is not ``known``, or given twice."""
    found: dict[str, ast.Option] = {}
    for option in options:
        if option.name not in known:
            raise SqlError("42601", f'option "{option.name}" not recognized')
        if option.name in found:
            raise SqlError("42601", "conflicting or redundant options", span=option.span)
        found[option.name] = option
    return found


def _span(options: Mapping[str, ast.Option], word: str) -> Span | None:
    option = options.get(word.lower().replace(" ", "_"))
    return None if option is None else option.span


def _number(option: ast.Option | None) -> int | None:
    """Read a whole number (defGetInt64): None where the option is absent or says NO."""
    if option is None or option.value is None:
        return None
    value = option.value
    if isinstance(value, ast.NumberText):
        try:
            number = int(value.text)
        except ValueError:
            raise SqlError("22P02", f'invalid input syntax for type bigint: "{value.text}"') from None
        if not BOUNDS[INT8][0] <= number <= BOUNDS[INT8][1]:
            raise SqlError("22003", f'value "{value.text}" is out of range for type bigint')
        return number
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise SqlError("42601", f"{option.name} requires a numeric value")


def _type(option: ast.Option | None) -> int | None:
    if option is None or not isinstance(option.value, ast.TypeName):
        return None
    oid = resolve_type(option.value).oid
    if oid not in BOUNDS:
        raise SqlError("22023", "sequence type must be smallint, integer, or bigint")
    return oid


def new_definition(options: Mapping[str, ast.Option], type_oid: int | None) -> SequenceDef:
    """Return a new sequence; ``type_oid``: of the column it is for. Raises SqlError 22023, 42601, 22003."""
    oid = type_oid or _type(options.get("as")) or INT8
    increment = _increment(options) or 1
    return _checked(options, _blank(oid, increment), None)


def changed_definition(options: Mapping[str, ast.Option], old: SequenceDef) -> tuple[SequenceDef, bool]:
    """Return a sequence as ALTER SEQUENCE leaves it, and whether it begins anew. Raises as ``new_definition``."""
    oid = _type(options.get("as")) or old.type_oid
    changed = replace(_of_type(old, oid), increment=_increment(options) or old.increment)
    changed = _checked(options, changed, old)
    if "restart" not in options:
        return changed, False
    given = _number(options["restart"])
    return replace(
        changed, restart=_within(changed, "RESTART", changed.start if given is None else given)
    ), True


def retyped_definition(old: SequenceDef, type_oid: int) -> SequenceDef:
    """Return the sequence of an identity column whose type changes. Raises SqlError 22023."""
    if type_oid not in BOUNDS:
        raise SqlError("22023", NO_IDENTITY_TYPE)
    return _checked({}, _of_type(old, type_oid), old)


def _of_type(old: SequenceDef, type_oid: int) -> SequenceDef:
    """Return a sequence with another type; bounds that were the old one's follow it."""
    before, after = BOUNDS[old.type_oid], BOUNDS[type_oid]
    return replace(
        old,
        type_oid=type_oid,
        minimum=after[0] if old.minimum == before[0] else old.minimum,
        maximum=after[1] if old.maximum == before[1] else old.maximum,
    )


def _increment(options: Mapping[str, ast.Option]) -> int | None:
    increment = _number(options.get("increment"))
    if increment == 0:
        raise SqlError("22023", "INCREMENT must not be zero")
    return increment


def _blank(type_oid: int, increment: int) -> SequenceDef:
    """Return a sequence with the bounds that its type and direction give it."""
    low, high = BOUNDS[type_oid]
    minimum, maximum = (1, high) if increment > 0 else (low, -1)
    return SequenceDef(
        type_oid=type_oid, start=minimum if increment > 0 else maximum, increment=increment, minimum=minimum, maximum=maximum,
    )  # fmt: skip


def _checked(
    options: Mapping[str, ast.Option], definition: SequenceDef, old: SequenceDef | None
) -> SequenceDef:
    """Enter the other options, in PostgreSQL's order; ``old`` None: the sequence is new."""
    low, high = BOUNDS[definition.type_oid]
    blank = _blank(definition.type_oid, definition.increment)
    if "cycle" in options:
        definition = replace(definition, cycle=boolean_option(options["cycle"]))
    if "maxvalue" in options:
        given = _number(options["maxvalue"])
        definition = replace(definition, maximum=blank.maximum if given is None else given)
    if "minvalue" in options:
        given = _number(options["minvalue"])
        definition = replace(definition, minimum=blank.minimum if given is None else given)
    for word, bound in (("MAXVALUE", definition.maximum), ("MINVALUE", definition.minimum)):
        if not low <= bound <= high:
            shown = format_type(definition.type_oid)
            raise SqlError("22023", f"{word} ({bound}) is out of range for sequence data type {shown}")
    if definition.minimum >= definition.maximum:
        raise SqlError(
            "22023",
            f"MINVALUE ({definition.minimum}) must be less than MAXVALUE ({definition.maximum})",
        )
    start = _number(options.get("start"))
    if start is None:
        start = definition.start
        if old is None:
            start = definition.minimum if definition.increment > 0 else definition.maximum
    definition = replace(definition, start=_within(definition, "START", start))
    cache = _number(options.get("cache"))
    if cache is not None and cache <= 0:
        raise SqlError("22023", f"CACHE ({cache}) must be greater than zero")
    return replace(definition, cache=cache or definition.cache)


def _within(definition: SequenceDef, word: str, value: int) -> int:
    if value < definition.minimum:
        raise SqlError("22023", f"{word} value ({value}) cannot be less than MINVALUE ({definition.minimum})")
    if value > definition.maximum:
        raise SqlError(
            "22023", f"{word} value ({value}) cannot be greater than MAXVALUE ({definition.maximum})"
        )
    return value


def check_position(definition: SequenceDef, value: int) -> None:
    """Raise SqlError 22023 where a sequence stands outside of its new bounds."""
    _within(definition, "RESTART", value)


# --- OWNED BY ---------------------------------------------------------------------------------------


def _owned_by(
    context: BindContext, options: Mapping[str, ast.Option], sequence: RelationDef | None = None
) -> tuple[int, int] | None:
    """Return (table, attnum), (0, 0) for NONE, None where nothing is said. ``sequence``: the one that is there."""
    option = options.get("owned_by")
    if option is None:
        return None
    names = option.value
    if not isinstance(names, tuple):
        raise AssertionError(f"OWNED BY is {type(names).__name__}, not a name")
    if len(names) == 1:
        if names[0] == "none":
            return 0, 0
        raise SqlError(
            "42601",
            "invalid OWNED BY option",
            hint="Specify OWNED BY table.column or OWNED BY NONE.",
        )
    schema = names[-3] if len(names) > 2 else ""
    table = context.relation(schema, names[-2])
    return table.oid, _owning_column(table, names[-1], sequence)


def _owning_column(table: RelationDef, name: str, sequence: RelationDef | None) -> int:
    if table.kind not in SEQUENCE_OWNERS or table.virtual:
        plural = RELATION_KINDS[table.kind].plural
        detail = None if table.virtual else f"This operation is not supported for {plural}."
        raise SqlError("42809", f'sequence cannot be owned by relation "{table.name}"', detail=detail)
    for column in table.live:
        if column.name == name:
            return column.attnum
    # told before the column's name; where there is such a column, by whoever runs the statement
    if sequence is not None and sequence.owner != table.owner:
        raise SqlError("55000", "sequence must have same owner as table it is linked to")
    if sequence is not None and sequence.schema != table.schema:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    raise SqlError("42703", f'column "{name}" of relation "{table.name}" does not exist')
