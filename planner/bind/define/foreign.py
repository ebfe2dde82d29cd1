"""Statements about foreign data: names to oids, OPTIONS to changes of options.

    CREATE SERVER s FOREIGN DATA WRAPPER wf OPTIONS (host 'a')         wrapper 16500, options (("host", "a"),)
    ALTER SERVER s OPTIONS (SET host 'b', DROP port)                   set host b; drop port

A handler is a function that returns fdw_handler, which nothing but C can be written in: there is none.
"""

from __future__ import annotations

from typing import Final, NoReturn, TypeVar

from pgwire.oids import FDW_HANDLER
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.session.utility import owner_name
from planner.catalog.foreign import (
    FOREIGN_WORDS,
    PG_FOREIGN_DATA_WRAPPER,
    PG_FOREIGN_SERVER,
    ForeignClass,
    ServerDef,
    WrapperDef,
)
from planner.facts import facts
from planner.statements.foreign_options import VALIDATOR, new_options, option_changes

CLASSES: Final[dict[str, ForeignClass]] = {
    "foreign data wrapper": PG_FOREIGN_DATA_WRAPPER,
    "server": PG_FOREIGN_SERVER,
}
"""The catalogs of what can be named, by what the grammar calls it."""

_Named = TypeVar("_Named", WrapperDef, ServerDef)


def _find(context: BindContext, kind: type[_Named], name: str) -> _Named:
    found = context.catalog.foreign_named(kind.class_oid, name)
    if not isinstance(found, kind):
        raise SqlError("42704", f'{FOREIGN_WORDS[kind.class_oid]} "{name}" does not exist')
    return found


def _either(context: BindContext, what: str, name: str) -> WrapperDef | ServerDef:
    """Return a wrapper or a server. Raises SqlError 42704."""
    if CLASSES[what] == PG_FOREIGN_DATA_WRAPPER:
        return _find(context, WrapperDef, name)
    return _find(context, ServerDef, name)


def _refuse_handler(context: BindContext, name: ast.Name) -> NoReturn:
    """Raise SqlError 42883, 42809: no function is a handler."""
    shown = ".".join(name)
    schemas = name[-2:-1] or context.search_path
    built_in = [p for p in facts().procs_by_name.get(name[-1], ()) if not p.arg_types]
    results = [p.result for p in built_in] if "pg_catalog" in schemas else []
    results += [
        f.result for f in context.catalog.functions_named(name[-1]) if f.schema in schemas and not f.inputs
    ]
    if not results:
        raise SqlError("42883", f"function {shown}() does not exist")
    if results[0] == FDW_HANDLER:
        raise AssertionError(f"function {name} is a handler, and is refused")
    raise SqlError("42809", f"function {shown} must return type fdw_handler")


def _validator(context: BindContext, name: ast.Name) -> int:
    """Return the function that looks at options, 0 for none. Raises SqlError 42883, 0A000 for one of the user's."""
    if not name:
        return 0
    schemas = name[-2:-1] or context.search_path
    if name[-1] == "postgresql_fdw_validator" and "pg_catalog" in schemas:
        return VALIDATOR
    types = (1009, 26)
    if any(
        f.schema in schemas and tuple(f.inputs) == types for f in context.catalog.functions_named(name[-1])
    ):
        raise not_supported("a validator of one's own")
    raise SqlError("42883", f"function {'.'.join(name)}(text[], oid) does not exist")


def bind_define_wrapper(context: BindContext, node: ast.DefineWrapper) -> st.CreateWrapper | st.AlterWrapper:
    """CREATE and ALTER FOREIGN DATA WRAPPER. Raises SqlError 42704, 42710, 42809, 42883, 22023, 0A000."""
    if node.create:
        if node.handler:
            _refuse_handler(context, node.handler)
        return st.CreateWrapper(
            name=node.name,
            validator=_validator(context, node.validator or ()),
            options=new_options(node.options),
        )
    found = _find(context, WrapperDef, node.name)
    if node.handler:
        _refuse_handler(context, node.handler)
    return st.AlterWrapper(
        wrapper=found.oid,
        handler=node.handler is not None,
        validator=None if node.validator is None else _validator(context, node.validator),
        changes=option_changes(node.options),
    )


def bind_create_server(context: BindContext, node: ast.CreateServer) -> st.CreateServer:
    """CREATE SERVER. Raises SqlError 42704, 42710, 22023; that there is one of that name is told when it runs."""
    there = context.catalog.foreign_named(PG_FOREIGN_SERVER, node.name) is not None
    return st.CreateServer(
        name=node.name,
        wrapper=0 if there else _find(context, WrapperDef, node.wrapper).oid,
        type=node.type,
        version=node.version,
        if_not_exists=node.if_not_exists,
        options=new_options(node.options),
    )


def bind_alter_server(context: BindContext, node: ast.AlterServer) -> st.AlterServer:
    """ALTER SERVER with a version or options. Raises SqlError 42704."""
    return st.AlterServer(
        server=_find(context, ServerDef, node.name).oid,
        has_version=node.has_version,
        version=node.version,
        changes=option_changes(node.options),
    )


def bind_user_mapping(
    context: BindContext, node: ast.UserMapping
) -> st.CreateUserMapping | st.AlterUserMapping | st.DropUserMapping:
    """CREATE, ALTER and DROP USER MAPPING. Raises SqlError 42704, 42710, 22023; a role that is not there is
    told when it runs.
    """
    role = None if node.role.special == "public" else owner_name(node.role)
    if node.verb == "drop":
        there = context.catalog.foreign_named(PG_FOREIGN_SERVER, node.server)
        return st.DropUserMapping(
            role=role, server=0 if there is None else there.oid, written=node.server, if_exists=node.lenient
        )
    if role is not None and not node.role.special and context.catalog.role(role) is None:
        raise SqlError("42704", f'role "{role}" does not exist')
    server = _find(context, ServerDef, node.server).oid
    if node.verb == "alter":
        return st.AlterUserMapping(role=role, server=server, changes=option_changes(node.options))
    return st.CreateUserMapping(
        role=role, server=server, if_not_exists=node.lenient, options=new_options(node.options)
    )


def bind_alter(context: BindContext, node: ast.AlterForeign) -> st.AlterForeign:
    """RENAME TO, OWNER TO. Raises SqlError 42704."""
    return st.AlterForeign(
        object=_either(context, node.what, node.name).oid,
        name=node.rename,
        owner=None if node.owner is None else owner_name(node.owner),
    )


def bind_drop(context: BindContext, node: ast.DropForeign) -> st.DropForeign:
    """DROP. Raises SqlError 42704; with IF EXISTS it is a notice."""
    found: dict[int, None] = {}
    notices: list[str] = []
    for name in node.names:
        try:
            found[_either(context, node.what, name).oid] = None
        except SqlError as error:
            if not node.if_exists:
                raise
            notices.append(f"{error.message}, skipping")
    return st.DropForeign(objects=tuple(found), missing=tuple(notices), cascade=node.cascade)


def bind_comment(context: BindContext, node: ast.CommentOnForeign) -> st.Comment:
    """COMMENT ON. Raises SqlError 42704."""
    found = _either(context, node.what, node.name)
    class_oid: st.CommentClass = 2328 if isinstance(found, WrapperDef) else 1417
    return st.Comment(class_oid=class_oid, object_oid=found.oid, sub_id=0, text=node.text, name=node.name)


def bind_import(context: BindContext, node: ast.ImportForeignSchema) -> st.ImportForeignSchema:
    """IMPORT FOREIGN SCHEMA. Raises SqlError 42704."""
    return st.ImportForeignSchema(server=_find(context, ServerDef, node.server).oid, schema=node.schema)
