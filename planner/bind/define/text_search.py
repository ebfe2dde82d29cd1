"""Statements about text search configurations and dictionaries: names to oids, token types to numbers,
options to literals.

    ALTER TEXT SEARCH CONFIGURATION fr ALTER MAPPING FOR word, hword WITH unaccent, french_stem
        configuration 16500    token types 2, 17    dictionaries 16490, 13157

Templates are PostgreSQL's own and the one of the extension unaccent, which is in the extension's schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pgwire.give_way import paced
from planner import ast
from planner import statements as st
from planner.base.errors import SqlError, not_supported
from planner.bind.context import BindContext
from planner.bind.define.placed import creation_schema
from planner.catalog import DictionaryDef, TextSearchDef
from planner.catalog.extensions import TEMPLATES
from planner.facts import REGCONFIG, REGDICTIONARY, rows
from planner.textsearch.dictionaries import dictionary_of
from planner.textsearch.names import PG_CATALOG, SEARCH_NAMES, find, missing
from planner.textsearch.options import literal_of
from planner.textsearch.parser import WORD_TYPES
from planner.types.facts import FIRST_USER_OID

CLASSES: Final[Mapping[int, st.CommentClass]] = {REGCONFIG: 3602, REGDICTIONARY: 3600}
"""The catalogs of what values of these types name."""

_NAMED_BY: Final = {what: named_by for named_by, what in SEARCH_NAMES.items()}
_MISSING: Final = ("42704", "3F000")


def _found(context: BindContext, named_by: int, name: ast.Name) -> TextSearchDef:
    """Return what a name means. Raises SqlError 42704, 3F000, 42501."""
    if len(name) > 1:
        context.check_open(name[-2])
    found = find(context.catalog, context.search_path, named_by, name)
    if found is None:
        raise missing(named_by, name)
    return found


def _qualified(option: ast.Option) -> ast.Name:
    """Return an option's value as a name. Raises SqlError 42601."""
    value = option.value
    if isinstance(value, ast.TypeName):
        return value.names
    if isinstance(value, str):
        return (value,)
    if isinstance(value, tuple):
        return value
    raise SqlError(
        "42601", f"argument of {option.name} must be a name" if value is not None else f"{option.name} requires a parameter"
    )  # fmt: skip


def bind_create(
    context: BindContext, node: ast.CreateTextSearch
) -> st.CreateConfiguration | st.CreateDictionary:
    """CREATE TEXT SEARCH CONFIGURATION or DICTIONARY. Raises SqlError 3F000, 42601, 42P17, 42704, 22023,
    F0000, 0A000.
    """
    schema = creation_schema(context, node.name, node.what)
    if _NAMED_BY[node.what] == REGCONFIG:
        return _configuration(context, schema, node)
    return _dictionary(context, schema, node)


def _configuration(context: BindContext, schema: str, node: ast.CreateTextSearch) -> st.CreateConfiguration:
    parser, copied = False, 0
    for option in node.options:
        if option.name == "parser":
            _check_parser(_qualified(option))
            parser = True
        elif option.name == "copy":
            copied = _found(context, REGCONFIG, _qualified(option)).oid
        else:
            raise SqlError("42601", f'text search configuration parameter "{option.name}" not recognized')
    if parser and copied:
        raise SqlError("42601", "cannot specify both PARSER and COPY options")
    if not parser and not copied:
        raise SqlError("42P17", "text search parser is required")
    return st.CreateConfiguration(schema=schema, name=node.name[-1], copy=copied)


def _check_parser(name: ast.Name) -> None:
    """Raise SqlError 42704 for another parser than the one that there is."""
    if name[-1] != "default" or (len(name) > 1 and name[-2] != PG_CATALOG):
        raise SqlError("42704", f'text search parser "{".".join(name)}" does not exist')


def _dictionary(context: BindContext, schema: str, node: ast.CreateTextSearch) -> st.CreateDictionary:
    template = 0
    options: list[tuple[str, str]] = []
    for option in node.options:
        if option.name == "template":
            template = _template(context, _qualified(option))
        else:
            options.append((option.name, _literal(option)))
    if not template:
        raise SqlError("42P17", "text search template is required")
    dictionary_of(template, tuple(options))
    return st.CreateDictionary(schema=schema, name=node.name[-1], template=template, options=tuple(options))


def _template(context: BindContext, name: ast.Name) -> int:
    """Return a template's oid. Raises SqlError 42704, 3F000."""
    if len(name) > 1 and context.catalog.schema(name[-2]) is None and name[-2] != PG_CATALOG:
        raise SqlError("3F000", f'schema "{name[-2]}" does not exist')
    brought = {
        (extension.schema_oid, called): oid
        for of, (oid, called) in TEMPLATES.items()
        if (extension := context.catalog.extension(of)) is not None
    }
    for entry in name[-2:-1] or context.search_path:
        if entry == PG_CATALOG:
            for row in rows("ts_templates"):
                if row["tmplname"] == name[-1]:
                    return int(row["oid"])
        schema = context.catalog.schema(entry)
        if schema is not None and (schema.oid, name[-1]) in brought:
            return brought[schema.oid, name[-1]]
    raise SqlError("42704", f'text search template "{".".join(name)}" does not exist')


def _literal(option: ast.Option) -> str:
    """Return an option's value as it is kept. Raises SqlError 42601 for one that has none."""
    value = option.value
    match value:
        case None:
            raise SqlError("42601", f"{option.name} requires a parameter")
        case ast.TypeName():
            return literal_of(".".join(value.names))
        case ast.NumberText():
            return value.text
        case tuple():
            return literal_of(".".join(value))
        case bool():
            return literal_of("true" if value else "false")
        case str() | int():
            return literal_of(value)
    raise SqlError("42601", f"{option.name} requires a parameter")


def bind_alter_mapping(context: BindContext, node: ast.AlterMapping) -> st.AlterMapping:
    """ALTER TEXT SEARCH CONFIGURATION ... MAPPING. Raises SqlError 42704, 3F000, 22023 (no such token type)."""
    configuration = _found(context, REGCONFIG, node.configuration)
    for alias in node.tokens:
        if alias not in WORD_TYPES:
            raise SqlError("22023", f'token type "{alias}" does not exist')
    return st.AlterMapping(
        configuration=configuration.oid,
        written=".".join(node.configuration),
        action=node.action,
        tokens=tuple((WORD_TYPES[alias], alias) for alias in dict.fromkeys(node.tokens)),
        dictionaries=tuple(_found(context, REGDICTIONARY, name).oid for name in node.dictionaries),
        if_exists=node.if_exists,
    )


def bind_alter_dictionary(context: BindContext, node: ast.AlterDictionary) -> st.AlterDictionary:
    """ALTER TEXT SEARCH DICTIONARY. Raises SqlError 42704, 3F000; what its template says is told when it runs."""
    return st.AlterDictionary(
        dictionary=_found(context, REGDICTIONARY, node.dictionary).oid,
        written=".".join(node.dictionary),
        changes=tuple((o.name, None if o.value is None else _literal(o)) for o in node.options),
    )


def changed_options(definition: DictionaryDef, changes: tuple[tuple[str, str | None], ...]) -> DictionaryDef:
    """Return a dictionary with changed options. Raises as ``planner.textsearch.dictionaries.dictionary_of``."""
    options = list(definition.options)
    for name, literal in changes:
        options = [option for option in options if option[0] != name]
        if literal is not None:
            options.append((name, literal))
    dictionary_of(definition.template, tuple(options))
    return replace(definition, options=tuple(options))


def altered(context: BindContext, node: ast.AlterTextSearch) -> TextSearchDef:
    """Return what ALTER TEXT SEARCH is about. Raises SqlError 42704, 3F000."""
    return _found(context, _NAMED_BY[node.what], node.name)


def bind_drop(context: BindContext, node: ast.DropTextSearch) -> st.DropTextSearch:
    """DROP. Raises SqlError 42704, 3F000; with IF EXISTS these are notices."""
    found: dict[int, str] = {}
    notices: list[str] = []
    for name in paced(node.names):
        try:
            found.setdefault(_found(context, _NAMED_BY[node.what], name).oid, ".".join(name))
        except SqlError as error:
            if not node.if_exists or error.sqlstate not in _MISSING:
                raise
            notices.append(f"{error.message}, skipping")
    return st.DropTextSearch(objects=tuple(found.items()), missing=tuple(notices), cascade=node.cascade)


def bind_comment(context: BindContext, node: ast.CommentOnTextSearch) -> st.Comment:
    """COMMENT ON. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    found = _found(context, _NAMED_BY[node.what], node.name)
    if found.oid < FIRST_USER_OID:
        raise not_supported(f"COMMENT ON {node.what.upper()} of PostgreSQL's own")
    return st.Comment(
        class_oid=CLASSES[found.named_by],
        object_oid=found.oid,
        sub_id=0,
        text=node.text,
        name=".".join(node.name),
    )
