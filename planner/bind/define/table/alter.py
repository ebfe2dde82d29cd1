"""ALTER and RENAME of tables, views, indexes, sequences, schemas.

ALTER TABLE is bound action by action over the table as the actions before left it, so ADD COLUMN b, ADD CHECK (b > 0)
works in one statement. What exists is named by oid, what does not exist yet is described (``st.KeySpec`` ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, assert_never, cast

from pgwire.give_way import give_way
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.composite import bind_alter_composite, bind_rename_attribute
from planner.bind.define.domain import bind_rename_constraint
from planner.bind.define.policy import SECURITY_ACTIONS, bind_row_security
from planner.bind.define.table.alter_partition import (
    bind_partition_action,
    refuse_for_partitions,
    refuse_rename_alone,
)
from planner.bind.define.table.alter_storage import (
    HARMLESS_ACTIONS,
    OPTION_ACTIONS,
    bind_options,
    check_harmless,
    column_named,
)
from planner.bind.define.table.alter_tuning import TUNING_ACTIONS, bind_tuning
from planner.bind.define.table.exclusion import exclusion_spec
from planner.bind.define.table.retype import alter_type, check_written
from planner.bind.define.table.sequence import (
    changed_definition,
    drawn_from,
    identity_sequence,
    options_by_name,
)
from planner.bind.define.table.table_parts import (
    Default,
    TableParts,
    add_column,
    add_constraint,
    bind_generated,
    bound_checks,
    bound_default,
    bound_foreign_keys,
    check_column_name,
    check_key_columns,
    column_type,
)
from planner.bind.define.table.typed import bind_of, refuse_for_typed
from planner.bind.define.trigger import TRIGGER_ACTIONS, bind_enable
from planner.bind.define.types import bind_rename_type, bind_set_type_schema, bind_type_owner
from planner.bind.scope import SYSTEM_COLUMNS
from planner.bind.session.utility import owner_name
from planner.bind.stored.evaluated import stored_default
from planner.catalog import ColumnDef, RelationDef
from planner.catalog.relation_kinds import (
    CALLED,
    COLUMNED,
    RELATION_KINDS,
    SYSTEM_COLUMNED,
    RelationKind,
    called,
)
from planner.catalog.row_parts import refuse_member
from planner.facts import TEXT
from planner.query import Var
from planner.query.walk import walk
from planner.statements.foreign_options import option_changes
from planner.types import SqlType
from planner.types.domains import domain_named, plain_type

# unknown types and options are found while the text is at hand
_PLACED = frozenset(("42704", "42601", "22023", "0A000"))
_KINDS: Final[Mapping[str, frozenset[RelationKind]]] = {
    **CALLED,
    "table": frozenset(RELATION_KINDS) - {"c"},
    "index": frozenset(RELATION_KINDS) - {"c"},  # RENAME
}
"""What ALTER of each word may name; which actions a kind of relation takes ``_refused`` says."""
_VIEW_ACTIONS = OPTION_ACTIONS | {"change owner"}
_OWN_VIEW_ACTIONS = _VIEW_ACTIONS | {"column default"}
_PERSISTENCE: dict[str, Literal["p", "u"]] = {"set logged": "p", "set un logged": "u"}
_SEQUENCE_ACTIONS = frozenset(("change owner", *_PERSISTENCE))
_MATVIEW_ACTIONS = _VIEW_ACTIONS | frozenset(
    ("set statistics", "set storage", "set options", "reset options", "set compression", "cluster on", "drop cluster",
     "replica identity", "set table space", "set access method")
)  # fmt: skip
_INDEX_ACTIONS = _VIEW_ACTIONS | {"set table space", "set statistics", "attach partition"}
RULE_ACTIONS = frozenset(("enable rule", "disable rule", "enable always rule", "enable replica rule"))
_TABLE_ONLY = OPTION_ACTIONS | RULE_ACTIONS | frozenset(
    (*SECURITY_ACTIONS, *_PERSISTENCE, "set compression", "cluster on", "drop cluster", "set access method", "set table space",
     "alter constraint", "replica identity", "add of", "drop of", "attach partition", "detach partition",
     "detach partition finalize")
)  # fmt: skip
_FOREIGN_ONLY = frozenset(("generic options", "alter column generic options"))


def _refused(relation: RelationDef, action: str) -> bool:
    """Tell whether a kind of relation does not take an action at all."""
    match relation.kind:
        case "r" | "p":
            return action in _FOREIGN_ONLY
        case "f":
            return action in _TABLE_ONLY
        case "i":
            return action not in _INDEX_ACTIONS
        case "m":
            return action not in _MATVIEW_ACTIONS
        case "S":
            return action not in _SEQUENCE_ACTIONS
        case "v":
            return action not in _OWN_VIEW_ACTIONS
        case "c":
            return True
        case _ as never:
            assert_never(never)


def bind_alter_table(
    context: BindContext, node: ast.AlterTable
) -> st.AlterTable | st.AlterComposite | st.Skip:
    """ALTER TABLE, VIEW, MATERIALIZED VIEW, INDEX; ALTER TYPE of attributes.

    Raises SqlError 42P01, 42703, 42809 and what its definitions raise; 0A000 for other actions. Actions that only
    tune storage are checked and dropped, so the result may have none.
    """
    written, node = node.actions, replace(node, actions=_in_passes(node.actions))
    if node.what == "type":
        changed = bind_alter_composite(context, node)
        return replace(changed, typed=_typed_below(context, changed.type, node.actions))
    if node.what not in _KINDS:
        raise not_supported(f"ALTER {node.what.upper()}", span=node.span)
    relation = _altered(context, node.relation, node.if_exists)
    if relation is None:
        return st.Skip(notice=f'relation "{node.relation.name}" does not exist, skipping')
    if relation.kind == "c":
        raise _composite(relation)
    if relation.kind not in (CALLED if node.what == "index" else _KINDS)[node.what]:
        raise SqlError("42809", f'"{relation.name}" is not {called(node.what)}')
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    for action in written:
        if action.kind != "alter column type":  # of which USING is looked at before
            refuse_for_typed(relation, action.kind)
    actions: list[st.AlterAction] = []
    fails: SqlError | None = None
    current = relation
    for action in node.actions:
        give_way()
        runs = False  # what is wrong now is told when the actions before have run
        if _refused(relation, action.kind) or (
            action.kind in OPTION_ACTIONS and _is_partitioned_index(context, relation)
        ):
            raise _wrong_kind(context, relation, action)
        try:
            if action.kind == "alter column type" and isinstance(action.definition, ast.ColumnDef):
                check_written(context, current, relation, action.name, action.definition)
            refuse_for_partitions(context, current, action, only=node.relation.only)
            refuse_for_typed(relation, action.kind)
            if action.kind == "set identity" and _set_with_added(actions, action):
                continue
            runs = action.kind != "alter column type" and not isinstance(
                action.definition, ast.PartitionAction
            )
            bound, current = _action(context, current, relation, action)
        except SqlError as error:
            retyped = action.kind == "alter column type"
            made = action.definition
            excludes = isinstance(made, ast.Constraint) and made.kind == "exclude"
            twice = isinstance(made, ast.Constraint) and error.sqlstate == "42701"
            with_text = excludes or twice or isinstance(made, ast.PartitionAction)
            if not with_text and (error.sqlstate == "42704" if retyped else error.sqlstate not in _PLACED):
                error.span = None  # as PostgreSQL, which binds these without the statement's text
            if not runs or not actions or error.ends_statement:
                raise
            fails = error.copy()
            break
        if bound is not None:
            actions.append(bound)
    return st.AlterTable(
        table=relation.oid, actions=_together(actions, relation), only=node.relation.only, fails=fails
    )


_PASSES: Final = {
    **dict.fromkeys(
        ("drop column", "drop constraint", "drop expression", "drop identity", "drop not null"), 0
    ),
    "alter column type": 1,
    "add column": 2,
    "add constraint": 3,
    "set not null": 4,
    "add identity": 5,
}
_LAST: Final = 6


def _in_passes(actions: Sequence[ast.AlterAction]) -> tuple[ast.AlterAction, ...]:
    """Return actions in the order in which they are done: what is dropped makes room for what is added,
    wherever it is written.
    """

    def when(action: ast.AlterAction) -> int:
        if action.kind == "column default":
            return 0 if action.definition is None else 5
        return _PASSES.get(action.kind, _LAST)

    return tuple(sorted(actions, key=when))


def _together(actions: Sequence[st.AlterAction], before: RelationDef) -> tuple[st.AlterAction, ...]:
    """Return actions with all new types of columns in one, and columns that USING reads dropped behind it."""
    retypes = [one for action in actions if isinstance(action, st.AlterColumnTypes) for one in action.columns]
    if not retypes:
        return tuple(actions)
    read = {node.attnum for one in retypes for node in walk(one.using) if isinstance(node, Var)}
    names = {column.name for column in before.live if column.attnum in read}
    late = [action for action in actions if isinstance(action, st.DropColumn) and action.name in names]
    first = next(at for at, action in enumerate(actions) if isinstance(action, st.AlterColumnTypes))
    ahead = [action for action in actions[:first] if action not in late]
    rest = [action for action in actions[first:] if not isinstance(action, st.AlterColumnTypes)]
    return (*ahead, st.AlterColumnTypes(columns=tuple(retypes)), *late, *rest)


def _typed_below(
    context: BindContext, type_oid: int, actions: Sequence[ast.AlterAction]
) -> tuple[st.AlterTable, ...]:
    """Bind what ALTER TYPE does to attributes as ALTER TABLE of each table of the type."""
    found: list[st.AlterTable] = []
    for relation in context.catalog.typed_tables(type_oid):
        context.versions[relation.oid] = relation.version
        current, bound = relation, list[st.AlterAction]()
        for action in actions:
            one, current = _action(context, current, relation, action)
            if one is not None:
                bound.append(one)
        found.append(st.AlterTable(table=relation.oid, actions=_together(bound, relation)))
    return tuple(found)


def _composite(relation: RelationDef) -> SqlError:
    return SqlError("42809", f'"{relation.name}" is a composite type', hint="Use ALTER TYPE instead.")


def _altered(context: BindContext, reference: ast.TableRef, if_exists: bool) -> RelationDef | None:
    if if_exists and context.find_relation(reference.schema, reference.name) is None:
        return None
    return context.relation(reference.schema, reference.name, catalog=reference.catalog)


def _is_partitioned_index(context: BindContext, relation: RelationDef) -> bool:
    table = context.catalog.relation_by_oid(relation.table_oid) if relation.kind == "i" else None
    return table is not None and table.kind == "p"


def _wrong_kind(context: BindContext, relation: RelationDef, action: ast.AlterAction) -> SqlError:
    plural = (
        "partitioned indexes"
        if _is_partitioned_index(context, relation)
        else RELATION_KINDS[relation.kind].plural
    )
    word = _ACTION_WORDS.get(action.kind, action.kind.upper())
    return SqlError(
        "42809",
        f'ALTER action {word} cannot be performed on relation "{relation.name}"',
        detail=f"This operation is not supported for {plural}.",
    )


_ACTION_WORDS = {
    "column default": "ALTER COLUMN ... SET DEFAULT",
    "set not null": "ALTER COLUMN ... SET NOT NULL",
    "drop not null": "ALTER COLUMN ... DROP NOT NULL",
    "set statistics": "ALTER COLUMN ... SET STATISTICS",
    "set storage": "ALTER COLUMN ... SET STORAGE",
    "set compression": "ALTER COLUMN ... SET COMPRESSION",
    "set options": "ALTER COLUMN ... SET",
    "reset options": "ALTER COLUMN ... RESET",
    "set un logged": "SET UNLOGGED",
    "alter column type": "ALTER COLUMN ... SET DATA TYPE",
    "set rel options": "SET",
    "reset rel options": "RESET",
    "set table space": "SET TABLESPACE",
    "add inherit": "INHERIT",
    "drop inherit": "NO INHERIT",
    "add of": "OF",
    "drop of": "NOT OF",
    "set access method": "SET ACCESS METHOD",
    "drop cluster": "SET WITHOUT CLUSTER",
    "generic options": "OPTIONS",
    "alter column generic options": "ALTER COLUMN ... OPTIONS",
    "set expression": "ALTER COLUMN ... SET EXPRESSION",
    **{kind: kind.upper().replace(" TRIG", " TRIGGER") for kind in TRIGGER_ACTIONS},
}


def _action(
    context: BindContext, relation: RelationDef, before: RelationDef, action: ast.AlterAction
) -> tuple[st.AlterAction | None, RelationDef]:
    """Bind one action; returns it and the table as it is afterwards. ``before``: as it was before the statement."""
    kind = action.kind
    if kind == "add column" and isinstance(action.definition, ast.ColumnDef):
        return _add_column(context, relation, action.definition, action.missing_ok)
    if kind == "drop column":
        if action.name in SYSTEM_COLUMNS:
            raise SqlError("0A000", f'cannot drop system column "{action.name}"')
        if not action.missing_ok:
            column_named(relation, action.name)
        columns = tuple(replace(c, dropped=True) if c.name == action.name else c for c in relation.columns)
        dropped = st.DropColumn(name=action.name, if_exists=action.missing_ok, cascade=action.cascade)
        attnum = next((c.attnum for c in relation.live if c.name == action.name), 0)
        indexes = tuple(i for i in relation.indexes if attnum not in i.attnums)
        return dropped, replace(relation, columns=columns, indexes=indexes)
    if kind == "add constraint" and isinstance(action.definition, ast.Constraint):
        return _add_constraint(context, relation, action.definition), relation
    if kind == "drop constraint":
        gone = st.DropConstraint(name=action.name, if_exists=action.missing_ok, cascade=action.cascade)
        keys = [c.index_oid for c in relation.constraints if c.name == action.name and c.kind in "pux"]
        return gone, replace(relation, indexes=tuple(i for i in relation.indexes if i.oid not in keys))
    if kind == "column default":
        column = column_named(relation, action.name)
        if column.identity:
            raise SqlError(
                "42601",
                f'column "{column.name}" of relation "{relation.name}" is an identity column',
                hint=None
                if action.definition is not None
                else "Use ALTER TABLE ... ALTER COLUMN ... DROP IDENTITY instead.",
            )
        if column.generated:
            raise SqlError(
                "42601",
                f'column "{column.name}" of relation "{relation.name}" is a generated column',
                hint=None
                if action.definition is not None
                else "Use ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION instead.",
            )
        value: Default = (None, None)
        if action.definition is not None:
            expression = cast(ast.Expression, action.definition)
            value = bound_default(context, expression, column.name, column.declared)
        changed = st.SetDefault(column=column.name, default=value[0], default_sql=value[1])
        return changed, _with_column(relation, replace(column, default_sql=value[1]))
    if kind in ("add identity", "set identity", "drop identity"):
        return _identity(context, relation, action)
    if kind in ("set not null", "drop not null"):
        column = column_named(relation, action.name)
        if kind == "drop not null" and column.identity:
            raise SqlError(
                "42601", f'column "{column.name}" of relation "{relation.name}" is an identity column'
            )
        if kind == "drop not null" and any(
            index.primary and column.attnum in index.attnums for index in relation.indexes
        ):
            raise SqlError("42P16", f'column "{column.name}" is in a primary key')
        not_null = kind == "set not null"
        changed_null = st.SetNotNull(column=column.name, not_null=not_null)
        return changed_null, _with_column(relation, replace(column, not_null=not_null))
    if kind == "drop expression":
        return _drop_expression(relation, action)
    if kind == "alter column type" and isinstance(action.definition, ast.ColumnDef):
        retyped, after = alter_type(context, relation, before, action.name, action.definition)
        return st.AlterColumnTypes(columns=(retyped,)), after
    if kind == "change owner" and action.role is not None:
        return st.AlterOwner(role=owner_name(action.role)), relation
    if kind == "validate constraint":
        return st.ValidateConstraint(name=action.name), relation
    if kind == "alter constraint" and isinstance(action.definition, ast.Constraint):
        changed_timing = action.definition
        return (
            st.AlterConstraint(
                name=changed_timing.name,
                deferrable=changed_timing.deferrable,
                deferred=changed_timing.initially_deferred,
            ),
            relation,
        )
    if kind in OPTION_ACTIONS:
        return bind_options(context, relation, action)
    if kind in _PERSISTENCE:
        return _set_persistence(relation, _PERSISTENCE[kind])
    if kind in SECURITY_ACTIONS:
        return bind_row_security(kind), relation
    if isinstance(action.definition, ast.PartitionAction):
        return bind_partition_action(context, relation, action, action.definition), relation
    if kind in _FOREIGN_ONLY:
        changes = option_changes(action.foreign_options)
        name = column_named(relation, action.name).name if action.name else ""
        return st.SetForeignOptions(column=name, changes=changes), relation
    if kind in ("add of", "drop of"):
        of = bind_of(context, relation, action.of_type)
        return of, replace(relation, of_type=of.type)
    if kind in TRIGGER_ACTIONS:
        return bind_enable(relation, kind, action.name), relation
    if kind in TUNING_ACTIONS:
        return bind_tuning(context, relation, action)
    if kind in HARMLESS_ACTIONS:
        check_harmless(action, relation)
        return None, relation
    if kind in ("add inherit", "drop inherit") and action.parent is not None:
        raise _inheritance(context, relation, action.parent, added=kind == "add inherit")
    if kind in RULE_ACTIONS:  # there are none but those that views are
        raise SqlError("42704", f'rule "{action.name}" for relation "{relation.name}" does not exist')
    word = _ACTION_WORDS.get(kind, kind.upper())
    raise not_supported(f"ALTER TABLE ... {word}", span=action.span)


def _inheritance(
    context: BindContext, relation: RelationDef, parent: ast.TableRef, *, added: bool
) -> SqlError:
    """Return what is wrong with INHERIT or NO INHERIT: no table inherits from another."""
    if relation.partition_of:
        return SqlError("42809", "cannot change inheritance of a partition")
    if added and relation.kind == "p":
        return SqlError("42809", "cannot change inheritance of partitioned table")
    above = context.relation(parent.schema, parent.name, catalog=parent.catalog)
    if added and above.kind == "p":
        return SqlError("42809", f'cannot inherit from partitioned table "{above.name}"')
    if added and above.partition_of:
        return SqlError("42809", "cannot inherit from a partition")
    if added and above.oid == relation.oid:
        return SqlError(
            "42P07",
            "circular inheritance not allowed",
            detail=f'"{above.name}" is already a child of "{relation.name}".',
        )
    if added:
        return not_supported("ALTER TABLE ... INHERIT", span=parent.span)
    return SqlError("42P01", f'relation "{above.name}" is not a parent of relation "{relation.name}"')


def _drop_expression(
    relation: RelationDef, action: ast.AlterAction
) -> tuple[st.DropExpression | None, RelationDef]:
    """Bind DROP EXPRESSION: the values stay, as those of an ordinary column. Raises SqlError 42703, 55000."""
    column = column_named(relation, action.name)
    if not column.generated:
        message = f'column "{column.name}" of relation "{relation.name}" is not a stored generated column'
        if not action.missing_ok:
            raise SqlError("55000", message)
        return st.DropExpression(column=column.name, notice=f"{message}, skipping"), relation
    after = replace(column, generated="", default_sql=None)
    return st.DropExpression(column=column.name), _with_column(relation, after)


def _set_persistence(
    relation: RelationDef, persistence: Literal["p", "u"]
) -> tuple[st.SetPersistence | None, RelationDef]:
    """Bind SET LOGGED and SET UNLOGGED; nothing for a partitioned table, which stores nothing. Raises
    SqlError 42P16.
    """
    if relation.persistence == "t":
        what = "sequence" if relation.kind == "S" else "table"
        raise SqlError(
            "42P16", f'cannot change logged status of {what} "{relation.name}" because it is temporary'
        )
    if relation.kind == "p" or relation.persistence == persistence:
        return None, relation
    return st.SetPersistence(persistence=persistence), replace(relation, persistence=persistence)


def _identity(
    context: BindContext, relation: RelationDef, action: ast.AlterAction
) -> tuple[st.AlterAction, RelationDef]:
    """Bind ADD GENERATED, SET GENERATED and DROP IDENTITY. Raises SqlError 55000, 22023, 42601."""
    column = column_named(relation, action.name)
    place = f'column "{column.name}" of relation "{relation.name}"'
    if action.kind == "add identity" and isinstance(action.definition, ast.Constraint):
        sequence = identity_sequence(action.definition.options, column.type.oid)
        if not column.not_null:
            raise SqlError("55000", f"{place} must be declared NOT NULL before identity can be added")
        if column.identity:
            raise SqlError("55000", f"{place} is already an identity column")
        if column.generated:
            raise SqlError(
                "42601",
                f'both identity and generation expression specified for column "{column.name}" of table '
                f'"{relation.name}"',
            )
        if column.default_sql is not None:
            raise SqlError("55000", f"{place} already has a default value")
        when = action.definition.generated_when
        added = st.AddIdentity(column=column.name, identity=when, sequence=sequence)
        return added, _with_column(relation, replace(column, identity=when))
    if not column.identity:
        if action.kind == "drop identity" and action.missing_ok:
            return st.DropIdentity(column=column.name, if_exists=True), relation
        raise SqlError("55000", f"{place} is not an identity column")
    if action.kind == "drop identity":
        after = replace(column, identity="", default_sql=None)
        return st.DropIdentity(column=column.name), _with_column(relation, after)
    options, when = _sequence_options(action), _generated(action)
    if not options:
        return st.SetIdentity(column=column.name, identity=when), relation
    drawn = context.catalog.relation_by_oid(drawn_from(column) or 0)
    if drawn is None or drawn.sequence is None:
        raise not_supported("SET of an identity column that the same statement adds", span=action.span)
    changed, restarts = changed_definition(options_by_name(options), drawn.sequence)
    return (
        st.SetIdentity(column=column.name, identity=when, definition=changed, restarts=restarts),
        relation,
    )


def _set_with_added(actions: list[st.AlterAction], action: ast.AlterAction) -> bool:
    """Change the identity that an action before makes of a column, and return True; False where none does.
    Raises SqlError 22023, 42601.
    """
    for place, made in enumerate(actions):
        if isinstance(made, st.AddIdentity) and made.column == action.name:
            options = _sequence_options(action)
            definition, _restarts = changed_definition(options_by_name(options), made.sequence.definition)
            actions[place] = replace(
                made,
                identity=_generated(action) or made.identity,
                sequence=replace(made.sequence, definition=definition),
            )
            return True
    return False


def _generated(action: ast.AlterAction) -> str:
    """Return when SET GENERATED says that values are generated, as in ``st.AddIdentity``, "" where it is not said."""
    return next(
        (chr(o.value) for o in action.options if o.name == "generated" and isinstance(o.value, int)), ""
    )


def _sequence_options(action: ast.AlterAction) -> list[ast.Option]:
    """Return the options of a sequence. Raises SqlError 42601 for those that one of an identity column has not."""
    options = [option for option in action.options if option.name != "generated"]
    if any(option.name in ("as", "owned_by", "sequence_name") for option in options):
        raise SqlError("42601", "sequence option not supported here", span=action.span)
    return options


def _with_column(relation: RelationDef, column: ColumnDef) -> RelationDef:
    """Return the table with one column replaced."""
    columns = tuple(column if c.attnum == column.attnum else c for c in relation.columns)
    return replace(relation, columns=columns)


def _add_column(
    context: BindContext, relation: RelationDef, node: ast.ColumnDef, missing_ok: bool
) -> tuple[st.AddColumn | None, RelationDef]:
    exists = any(c.name == node.name for c in relation.live)
    if exists:  # which is told to whom the table is, before its type and default are looked at
        told = st.ColumnSpec(name=node.name, type=SqlType(TEXT))
        return st.AddColumn(column=told, if_not_exists=missing_ok), relation
    parts = TableParts(table=relation.name, foreign_table=relation.kind == "f")
    refuse_member(context.catalog, relation.row_type, column_type(context, node).oid)
    spec = add_column(context, parts, node)
    if any(key.primary for key in parts.keys):
        if any(index.primary for index in relation.indexes):
            raise _second_primary(relation, node.span)
        parts.not_null((node.name,))
        spec = parts.columns[0]
    if spec.default is None and spec.default_sql is not None and not spec.generated:
        stored_default(
            spec.default_sql, spec.type, context.catalog
        )  # rows that are there cannot be filled by calls
    column = ColumnDef(
        attnum=len(relation.columns) + 1,
        name=spec.name,
        type=plain_type(spec.type),
        domain=domain_named(spec.type),
        not_null=spec.not_null,
        default_sql=spec.default_sql,
        identity=spec.identity,
        generated=spec.generated,
    )
    if spec.generated and relation.source_oid:
        raise not_supported("a generated column in the table of a source", span=node.span)
    if column.domain and relation.source_oid:
        raise not_supported("a column of a domain in the table of a source", span=node.span)
    after = bind_generated(context, parts, replace(relation, columns=(*relation.columns, column)))
    spec = parts.columns[0]
    for key in parts.keys:
        check_key_columns(key, after.columns, node.span)
    checks = bound_checks(context, parts.checks, after)
    added = st.AddColumn(
        column=spec,
        if_not_exists=missing_ok,
        keys=tuple(parts.keys),
        checks=checks,
        foreign_keys=bound_foreign_keys(context, parts),
    )
    return added, after


def _second_primary(relation: RelationDef, span: Span | None) -> SqlError:
    return SqlError("42P16", f'multiple primary keys for table "{relation.name}" are not allowed', span=span)


def _add_constraint(
    context: BindContext, relation: RelationDef, node: ast.Constraint
) -> st.AddKey | st.AddCheck | st.AddForeignKey:
    parts = TableParts(table=relation.name, foreign_table=relation.kind == "f")
    add_constraint(context, parts, node)
    if parts.foreign:
        return st.AddForeignKey(key=bound_foreign_keys(context, parts)[0])
    if parts.checks:
        [check] = bound_checks(context, parts.checks, relation)
        return st.AddCheck(check=check, not_valid=node.not_valid)
    if parts.exclusions:
        return st.AddKey(key=exclusion_spec(context, node, relation))
    if not parts.keys:
        raise not_supported(f"ADD {node.kind.upper()}", span=node.span)
    [key] = parts.keys
    if key.using_index is None:
        _check_added(key, relation, node.span)
        check_key_columns(key, relation.columns, node.span)
    if key.primary and any(index.primary for index in relation.indexes):
        raise _second_primary(relation, node.span)
    return st.AddKey(key=key)


def _check_added(key: st.KeySpec, relation: RelationDef, span: Span | None) -> None:
    """Raise what PostgreSQL says of the columns of a key that a table gets before it looks for others: a
    primary key makes its own NOT NULL.
    """
    for place, name in enumerate(key.columns):
        if name in key.columns[:place]:
            raise SqlError("42701", f'column "{name}" appears twice in {key.words} constraint', span=span)
    names = {column.name for column in relation.live} | SYSTEM_COLUMNS.keys()
    for name in key.columns if key.primary else ():
        if name not in names:
            raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


# --- RENAME, SET SCHEMA, OWNER ------------------------------------------------------------------------


def bind_rename(
    context: BindContext, node: ast.Rename
) -> st.Rename | st.AlterType | st.AlterComposite | st.RenameDomainConstraint | st.Skip:
    """ALTER ... RENAME of tables, views, indexes, columns, constraints, schemas, roles."""
    if node.what == "database":
        return st.Rename(what="database", old=node.old, new=node.new)
    if node.what in ("type", "domain") and node.relation is None:
        return bind_rename_type(context, node)
    if node.what == "attribute" and node.relation_what == "type":
        return bind_rename_attribute(context, node)
    if node.what == "domain constraint":
        return bind_rename_constraint(context, node)
    if node.what in ("schema", "role"):
        what: Literal["schema", "role"] = "schema" if node.what == "schema" else "role"
        if what == "schema" and context.catalog.schema(node.old) is None:
            raise SqlError("3F000", f'schema "{node.old}" does not exist')
        return st.Rename(what=what, old=node.old, new=node.new)
    inner = {"column": "column", "attribute": "column", "table constraint": "constraint"}
    inner |= {"constraint": "constraint", "tabconstraint": "constraint"}
    if node.relation is None or (node.what not in _KINDS and node.what not in inner):
        raise not_supported(f"ALTER {node.what.upper()} ... RENAME", span=node.span)
    relation = _altered(context, node.relation, node.if_exists)
    if relation is None:
        return st.Skip(notice=f'relation "{node.relation.name}" does not exist, skipping')
    if relation.kind == "c":
        raise _composite(relation)
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    if node.what in inner:
        # the same is asked of whose constraint is renamed
        if relation.of_type:
            raise SqlError("42809", "cannot rename column of typed table")
        if relation.kind not in COLUMNED:
            raise SqlError("42809", f'cannot rename columns of relation "{relation.name}"')
        if inner[node.what] == "column":
            _renamed_column(relation, node.old)
            if node.relation.only:
                refuse_rename_alone(context, relation, "column", node.old)
            if relation.kind in SYSTEM_COLUMNED:  # views have no system columns
                check_column_name(node.new)
            return st.Rename(what="column", relation=relation.oid, old=node.old, new=node.new)
        if node.relation.only:
            refuse_rename_alone(context, relation, "constraint", node.old)
        return st.Rename(what="constraint", relation=relation.oid, old=node.old, new=node.new)
    if relation.kind not in _KINDS[node.what]:
        raise SqlError("42809", f'"{relation.name}" is not {called(node.what)}')
    return st.Rename(what="relation", relation=relation.oid, old=relation.name, new=node.new)


def _renamed_column(relation: RelationDef, name: str) -> None:
    if name in SYSTEM_COLUMNS:
        raise SqlError("0A000", f'cannot rename system column "{name}"')
    if all(column.name != name for column in relation.live):
        raise SqlError("42703", f'column "{name}" does not exist')


def bind_set_schema(context: BindContext, node: ast.SetSchema) -> st.Statement:
    """ALTER TABLE, VIEW, MATERIALIZED VIEW, SEQUENCE ... SET SCHEMA. Raises SqlError 42P01, 42809, 3F000;
    0A000 for others.
    """
    if node.what in ("type", "domain"):
        return bind_set_type_schema(context, node)
    if node.what not in _KINDS or node.what == "index" or node.relation is None:
        raise not_supported(f"ALTER {node.what.upper()} ... SET SCHEMA", span=node.span)
    relation = _altered(context, node.relation, node.if_exists)
    if relation is None:
        return st.Skip(notice=f'relation "{node.relation.name}" does not exist, skipping')
    if relation.kind == "c":
        raise _composite(relation)
    if relation.kind == "i" and node.what == "table":
        raise SqlError(
            "42809",
            f'cannot change schema of index "{relation.name}"',
            hint="Change the schema of the table instead.",
        )
    if relation.kind not in _KINDS[node.what] or relation.kind == "i":
        raise SqlError("42809", f'"{relation.name}" is not {called(node.what)}')
    if relation.virtual:
        raise SqlError("42501", f'permission denied: "{relation.name}" is a system catalog')
    if node.new != "pg_temp" and context.catalog.schema(node.new) is None and not _is_owned(relation):
        raise SqlError("3F000", f'schema "{node.new}" does not exist')
    return st.AlterTable(table=relation.oid, actions=(st.SetSchema(schema=node.new),))


def _is_owned(relation: RelationDef) -> bool:
    """Tell whether a relation is a sequence of a column, which moves with its table: told before all else."""
    return relation.sequence is not None and bool(relation.sequence.owner_table)


def bind_alter_owner(context: BindContext, node: ast.AlterOwner) -> st.Statement:
    """ALTER SCHEMA, TYPE, DATABASE, LARGE OBJECT ... OWNER TO; 0A000 for other kinds (tables and views go
    through ALTER TABLE).
    """
    if node.what in ("type", "domain"):
        return bind_type_owner(context, node)
    if node.what == "schema":
        name = node.name[-1]
        if context.catalog.schema(name) is None:
            raise SqlError("3F000", f'schema "{name}" does not exist')
        return st.AlterSchemaOwner(schema=name, role=owner_name(node.role))
    if node.what == "database":
        return st.AlterDatabase(name=node.name[-1], options={"owner": owner_name(node.role)})
    if node.what == "large object":
        return st.AlterLargeObject(oid=int(node.name[0]), role=owner_name(node.role))
    raise not_supported(f"ALTER {node.what.upper()} ... OWNER TO", span=node.span)
