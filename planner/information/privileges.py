"""Privilege inquiry: has_table_privilege and its family, pg_has_role, access control lists.

What a role may do is said in ``planner.catalog.rights``. Functions and types are everybody's to use, as long
as nothing is granted on them.

The answer is that of now, whatever time a statement reads at: policies, views and functions that ask let
nobody in from whom a right has been taken since. Names are those of the time that is read.

A privilege word that does not belong to the kind of object is 22023, an unknown name the SQLSTATE of its kind, an
unknown oid gives NULL.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from string import whitespace
from typing import Any, Final, TypeAlias

from pgwire.codecs.invalid import quoting
from pgwire.long.values import fields, stripped
from planner.base.errors import SqlError
from planner.bind.query.select import bind_view
from planner.bind.stored import stored_context
from planner.catalog import RelationDef, RoleDef
from planner.catalog.acl import DATABASE_OWNER, WORDS, inherited, item_text, may_admit, memberships
from planner.catalog.acl_items import AclItem
from planner.catalog.foreign import FOREIGN_WORDS, ServerDef, WrapperDef
from planner.catalog.relation_kinds import RELATION_KINDS
from planner.catalog.rights import (
    SYSTEM_COLUMNS,
    Rights,
    database_owner,
    grantable_columns,
    languages,
)
from planner.facts import REGPROCEDURE, TID, facts
from planner.functions.registry import REGISTRY
from planner.functions.session import EvalSession
from planner.functions.values.acl_items import items_of, role_name
from planner.functions.values.reg import find_relation, find_type, reg_input
from planner.query import CTID, Expr, FuncExpr, RelationRange, Select, Var
from planner.query.walk import walk
from planner.types.facts import is_fact

SUPERUSER_OID = 10


# Whether some rights include any of some letters, or the option to grant them.
Asked: TypeAlias = Callable[[Rights, str, bool], bool]
Resolve = Callable[[EvalSession, Any], "Asked | None"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object: its privilege words, and how a name or oid is resolved."""

    words: tuple[str, ...]
    resolve: Resolve


def _on_relation(relation: RelationDef) -> Asked:
    return lambda rights, letters, option: rights.relation(relation, letters, option=option)


def _public(owner: int, letters: str) -> Asked:
    """What everybody may do with what cannot be granted on: these; its owner may do all."""
    return lambda rights, wanted, option: (
        rights.owns(owner) or (not option and bool(set(wanted) & set(letters)))
    )


def _relation(session: EvalSession, wanted: Any) -> RelationDef | None:
    if isinstance(wanted, int):
        return session.rights_catalog.relation_by_oid(wanted)
    relation = find_relation(session, wanted)
    if relation is None:
        raise SqlError("42P01", quoting("relation ", str(wanted), " does not exist"))
    return session.rights_catalog.relation_by_oid(relation.oid)


def _table(session: EvalSession, wanted: Any) -> Asked | None:
    relation = _relation(session, wanted)
    return None if relation is None else _on_relation(relation)


def _any_column(session: EvalSession, wanted: Any) -> Asked | None:
    relation = _relation(session, wanted)
    if relation is None:
        return None
    return lambda rights, letters, option: any(
        rights.column(relation, column.attnum, letters, option=option) for column in relation.live
    )


def _sequence(session: EvalSession, wanted: Any) -> Asked | None:
    relation = _relation(session, wanted)
    if relation is not None and relation.kind != "S":
        if isinstance(wanted, str):
            raise SqlError("42809", f'"{wanted}" is not a sequence')
        return None
    return None if relation is None else _on_relation(relation)


def _schema(session: EvalSession, wanted: Any) -> Asked | None:
    if isinstance(wanted, int):
        schema = session.rights_catalog.schema_by_oid(wanted)
        if schema is None:
            return None
    else:
        schema = session.rights_catalog.schema(wanted)
        if schema is None:
            raise SqlError("3F000", quoting("schema ", str(wanted), " does not exist"))
    return lambda rights, letters, option: rights.schema(schema, letters, option=option)


def _database(session: EvalSession, wanted: Any) -> Asked | None:
    if isinstance(wanted, int):
        found = session.rights_catalog.database_by_oid(wanted)
        if found is None:
            return None
    else:
        found = session.rights_catalog.database_named(wanted)
        if found is None:
            raise SqlError("3D000", quoting("database ", str(wanted), " does not exist"))
    oid = found.oid
    return lambda rights, letters, option: rights.database(letters, option=option, oid=oid)


def _function(session: EvalSession, wanted: Any) -> Asked | None:
    oid = wanted if isinstance(wanted, int) else reg_input(session, REGPROCEDURE, wanted)
    function = session.rights_catalog.function_by_oid(oid) if oid is not None else None
    if function is not None:
        return lambda rights, letters, option: rights.function(function, option=option)
    if oid not in facts().procs:
        return None
    if oid in session.rights_catalog.guarded_functions:
        return lambda rights, letters, option: rights.system_function(oid, option=option)
    return _public(SUPERUSER_OID, "X")


def _type(session: EvalSession, wanted: Any) -> Asked | None:
    oid = wanted if isinstance(wanted, int) else find_type(wanted, session)
    if oid is None:
        raise SqlError("42704", quoting("type ", str(wanted), " does not exist"))
    made = session.rights_catalog.type_by_oid(oid)
    if made is not None:
        return lambda rights, letters, option: rights.type(made, option=option)
    if is_fact(oid):
        return lambda rights, letters, option: rights.builtin_type(oid, option=option)
    if session.rights_catalog.row_type_relation(oid) is None:
        return None
    return _public(SUPERUSER_OID, "U")


def _language(session: EvalSession, wanted: Any) -> Asked | None:
    for name, (oid, _) in languages().items():
        if wanted in (name, oid):
            return functools.partial(_of_language, name)
    if isinstance(wanted, int):
        return None
    raise SqlError("42704", quoting("language ", str(wanted), " does not exist"))


def _of_language(name: str, rights: Rights, letters: str, option: bool) -> bool:
    return rights.language(name, option=option)


def _tablespace(session: EvalSession, wanted: Any) -> Asked | None:
    if wanted in (1663, 1664, "pg_default", "pg_global"):
        return _public(SUPERUSER_OID, "")
    if isinstance(wanted, int):
        return None
    raise SqlError("42704", quoting("tablespace ", str(wanted), " does not exist"))


def _foreign(kind: type[WrapperDef] | type[ServerDef]) -> Resolve:
    """Return the resolver for foreign-data wrappers or servers."""

    def resolve(session: EvalSession, wanted: Any) -> Asked | None:
        catalog = session.rights_catalog
        if isinstance(wanted, int):
            found = catalog.foreign_by_oid(wanted)
            if not isinstance(found, kind):
                return None
        else:
            found = catalog.foreign_named(kind.class_oid, wanted)
            if not isinstance(found, kind):
                raise SqlError(
                    "42704", quoting(f"{FOREIGN_WORDS[kind.class_oid]} ", str(wanted), " does not exist")
                )
        made = found
        return lambda rights, letters, option: rights.foreign(made, option=option)

    return resolve


def _parameter(session: EvalSession, wanted: Any) -> Asked | None:
    return lambda rights, letters, option: rights.parameter(wanted, letters, option=option)


_TABLE_WORDS = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER", "RULE")
_COLUMN_WORDS = ("SELECT", "INSERT", "UPDATE", "REFERENCES")
KINDS: dict[str, Kind] = {
    "has_table_privilege": Kind(_TABLE_WORDS, _table),
    "has_any_column_privilege": Kind(_COLUMN_WORDS, _any_column),
    "has_sequence_privilege": Kind(("USAGE", "SELECT", "UPDATE"), _sequence),
    "has_schema_privilege": Kind(("CREATE", "USAGE"), _schema),
    "has_database_privilege": Kind(("CREATE", "TEMPORARY", "TEMP", "CONNECT"), _database),
    "has_function_privilege": Kind(("EXECUTE",), _function),
    "has_type_privilege": Kind(("USAGE",), _type),
    "has_language_privilege": Kind(("USAGE",), _language),
    "has_tablespace_privilege": Kind(("CREATE",), _tablespace),
    "has_foreign_data_wrapper_privilege": Kind(("USAGE",), _foreign(WrapperDef)),
    "has_server_privilege": Kind(("USAGE",), _foreign(ServerDef)),
    "has_parameter_privilege": Kind(("SET", "ALTER SYSTEM"), _parameter),
}


_LONGEST: Final = 80
"""Characters that a privilege may be written with, its option included."""


def _word(part: str) -> str:
    """Return a privilege's name in upper case with one blank between words; of one that is too long for any
    only its beginning.
    """
    return " ".join(stripped(part, whitespace, True, True)[:_LONGEST].upper().split())


def _unrecognized(word: str) -> SqlError:
    return SqlError("22023", quoting("unrecognized privilege type: ", word))


def _words(text: str, allowed: Sequence[str]) -> list[tuple[str, bool]]:
    """Return (privilege, with grant option) for each word of a list; 22023 for one that is not allowed."""
    found: list[tuple[str, bool]] = []
    for part in fields(text, ","):
        word = _word(part)
        grant = word.endswith(" WITH GRANT OPTION")
        word = word.removesuffix(" WITH GRANT OPTION")
        if word not in allowed:
            raise _unrecognized(stripped(part, whitespace, True, True))
        found.append((word, grant))
    return found


def _role(session: EvalSession, wanted: Any) -> RoleDef | None:
    """Return the role asked about; None for the pseudo-role public and for an unknown oid."""
    if isinstance(wanted, int):
        return session.rights_catalog.role_by_oid(wanted) if wanted else None
    if wanted == "public":
        return None
    role = session.rights_catalog.role(wanted)
    if role is None:
        raise SqlError("42704", quoting("role ", str(wanted), " does not exist"))
    return role


def _held(session: EvalSession, role: RoleDef | None, asked: Asked, words: list[tuple[str, bool]]) -> bool:
    """Tell whether the role has any of the privileges; RULE has been nobody's for long."""
    rights = Rights(session.rights_catalog, role)
    return any(asked(rights, WORDS[word], option) for word, option in words if word != "RULE")


def _inquiry(kind: Kind, with_user: bool) -> Callable[..., bool | None]:
    def has_privilege(session: EvalSession, *args: Any) -> bool | None:
        role = _role(session, args[0] if with_user else session.user)
        wanted, text = args[-2:]
        target = kind.resolve(session, wanted)
        words = _words(text, kind.words)
        return None if target is None else _held(session, role, target, words)

    return has_privilege


def _column_named(relation: RelationDef, name: str) -> int:
    """Return the number of a column, be it a system column or one that was dropped. Raises SqlError 42703."""
    columns = grantable_columns(relation) | {c.attnum: c.name for c in relation.columns if not c.hidden}
    for attnum, its in columns.items():
        if its == name:
            return attnum
    raise SqlError("42703", f'column "{name}" of relation "{relation.name}" does not exist')


def _column_inquiry(with_user: bool) -> Callable[..., bool | None]:
    def has_column_privilege(session: EvalSession, *args: Any) -> bool | None:
        role = _role(session, args[0] if with_user else session.user)
        wanted, column, text = args[-3:]
        words = _words(text, _COLUMN_WORDS)
        relation = _relation(session, wanted)
        if relation is None:
            return None
        if isinstance(column, str):
            attnum = _column_named(relation, column)
        else:
            attnum = column if column in SYSTEM_COLUMNS else relation.numbered(column)
        if attnum not in grantable_columns(relation):
            return None
        return _held(
            session,
            role,
            lambda rights, letters, option: rights.column(relation, attnum, letters, option=option),
            words,
        )

    return has_column_privilege


def _role_inquiry(with_user: bool) -> Callable[..., bool | None]:
    def pg_has_role(session: EvalSession, *args: Any) -> bool | None:
        role = _role(session, args[0] if with_user else session.user)
        wanted, text = args[-2:]
        other = _role(session, wanted)
        for part in fields(text, ","):
            word = _word(part)
            base = word.removesuffix(" WITH GRANT OPTION").removesuffix(" WITH ADMIN OPTION")
            if base not in ("MEMBER", "USAGE"):
                raise _unrecognized(stripped(part, whitespace, True, True))
        if role is None or other is None:
            return role is not None and role.superuser
        role_of = session.rights_catalog.role_by_oid
        member = other.oid
        if member == DATABASE_OWNER:  # whoever owns the database is its one member
            member = database_owner(session.rights_catalog, session.rights_catalog.database)
        for part in text.split(","):
            word = " ".join(part.upper().split())
            if word.endswith(" OPTION"):
                if may_admit(role, other.oid, role_of):
                    return True
            elif role.superuser or member in (
                memberships(role, role_of) if word == "MEMBER" else inherited(role, role_of)
            ):
                return True
        return False

    return pg_has_role


def latest_tid(session: EvalSession, name: str, tid: int) -> int:
    """SQL's ``currtid2``: where the latest version of a row is: an UPDATE leaves it where it was.

    A view whose column ``ctid`` is that of a table stands for the table. Raises SqlError 42P01, 42501, 22023
    for a block that the table has not, 42809 (indexes, composite types, and views without such a column),
    0A000 (what stores no rows).
    """
    relation = _relation(session, name)
    if relation is None:
        raise AssertionError("a relation is gone that was just found")
    if relation.kind in "ic":
        what = "an index" if relation.kind == "i" else "a composite type"
        raise SqlError("42809", f'"{relation.name}" is {what}')
    return _latest_tid(session, relation, tid)


def _latest_tid(session: EvalSession, relation: RelationDef, tid: int) -> int:
    shown = f'"{relation.schema}.{relation.name}"'
    if not Rights(session.rights_catalog, _role(session, session.user)).relation(relation, "r"):
        raise SqlError("42501", f"permission denied for {RELATION_KINDS[relation.kind].word} {relation.name}")
    if relation.kind == "v" and not relation.virtual:
        return _latest_tid(session, _with_ctid(session, relation), tid)
    if relation.kind not in "rmS" or relation.virtual:
        raise SqlError("0A000", f"cannot look at latest visible tid for relation {shown}")
    block, position = divmod(tid, 1 << 16)
    if block >= (1 if relation.kind == "S" else session.system.blocks(relation.oid)) or not position:
        raise SqlError("22023", f'tid ({block}, {position}) is not valid for relation "{relation.name}"')
    return tid


def _with_ctid(session: EvalSession, view: RelationDef) -> RelationDef:
    """Return the relation whose ctid is a view's column of that name. Raises SqlError 42809."""
    at = next((number for number, column in enumerate(view.live) if column.name == "ctid"), None)
    if at is None:
        raise SqlError("42809", "currtid cannot handle views with no CTID")
    if view.live[at].declared.oid != TID:
        raise SqlError("42809", "ctid isn't of type TID")
    query = bind_view(stored_context(session.catalog, view.view_sql, view.view_path), view)
    expr = query.targets[at].expr if isinstance(query, Select) else None
    if isinstance(expr, Var) and expr.attnum == CTID and isinstance(query, Select):
        item = query.ranges[expr.range]
        found = session.rights_catalog.relation_by_oid(item.oid) if isinstance(item, RelationRange) else None
        if found is not None:
            return found
    raise SqlError("42809", "currtid cannot handle this view")


def inquires(expr: Expr) -> bool:
    """Tell whether an expression asks what a role may do, or is a member of."""
    names = {*KINDS, "has_column_privilege", "pg_has_role"}
    procs = facts().procs
    return any(
        isinstance(node, FuncExpr) and node.proc in procs and procs[node.proc].name in names
        for node in walk(expr)
    )


# --- access control lists -------------------------------------------------------------------------

# What an owner and everybody may do before any GRANT, by the letter acldefault() takes.
_DEFAULT_ACL = {
    "c": ("", ""), "r": ("arwdDxt", ""), "s": ("rwU", ""), "d": ("CTc", "Tc"), "f": ("X", "X"), "l": ("U", "U"),
    "L": ("rw", ""), "n": ("UC", ""), "p": ("sA", ""), "t": ("C", ""), "F": ("U", ""), "S": ("U", ""), "T": ("U", "U"),
}  # fmt: skip
ACL_WORDS = {
    "a": "INSERT", "r": "SELECT", "w": "UPDATE", "d": "DELETE", "D": "TRUNCATE", "x": "REFERENCES", "t": "TRIGGER",
    "X": "EXECUTE", "U": "USAGE", "C": "CREATE", "T": "TEMPORARY", "c": "CONNECT", "s": "SET", "A": "ALTER SYSTEM",
}  # fmt: skip


def acl_default(session: EvalSession, kind: str, owner: int) -> tuple[str, ...]:
    """SQL's ``acldefault``: the privileges an object has before any GRANT, as aclitem texts."""
    if kind not in _DEFAULT_ACL:
        raise SqlError("22023", f"unrecognized object type abbreviation: {kind}")
    name = role_name(session, owner)
    own, everybody = _DEFAULT_ACL[kind]
    items = [f"={everybody}/{name}"] if everybody else []
    if own:
        items.append(f"{name}={own}/{name}")
    return tuple(items)


def make_item(session: EvalSession, grantee: int, grantor: int, privileges: str, grantable: bool) -> str:
    """SQL's ``makeaclitem``: an item of a list, its privilege by its word; 22023 for an unknown one."""
    if privileges[:_LONGEST].upper() not in (*WORDS, "RULE"):
        raise _unrecognized(privileges)
    letters = WORDS.get(privileges.upper(), "")  # RULE has been nobody's for long
    item = AclItem(grantee=grantee, grantor=grantor, letters=letters, grantable=letters if grantable else "")
    return item_text(item, functools.partial(role_name, session))


def acl_explode(session: EvalSession, acl: Sequence[str | None]) -> Iterator[tuple[int, int, str, bool]]:
    """SQL's ``aclexplode``: (grantor, grantee, privilege, grantable) for each letter of each item."""
    return iter(
        [
            (item.grantor, item.grantee, ACL_WORDS[letter], letter in item.grantable)
            for item in items_of(session, acl)
            for letter in item.letters
        ]
    )


def _register() -> None:
    known = facts()
    for name, kind in KINDS.items():
        for proc in known.procs_by_name.get(name, ()):
            form = _inquiry(kind, with_user=len(proc.arg_types) == 3)
            REGISTRY.python(known.signature(proc.oid), form, needs_session=True)
    for proc in known.procs_by_name["has_column_privilege"]:
        form = _column_inquiry(with_user=len(proc.arg_types) == 4)
        REGISTRY.python(known.signature(proc.oid), form, needs_session=True)
    for proc in known.procs_by_name["pg_has_role"]:
        form = _role_inquiry(with_user=len(proc.arg_types) == 3)
        REGISTRY.python(known.signature(proc.oid), form, needs_session=True)
    REGISTRY.python("acldefault(char,oid)", acl_default, needs_session=True)
    REGISTRY.python("aclexplode(_aclitem)", acl_explode, needs_session=True)
    REGISTRY.python("currtid2(text,tid)", latest_tid, needs_session=True)
    REGISTRY.python("makeaclitem(oid,oid,text,bool)", make_item, needs_session=True)


_register()
