"""Collations: what a name means, CREATE, REFRESH VERSION, DROP and COMMENT ON (ALTER:
``planner.bind.define.alter_placed``).

    CREATE COLLATION c (locale = 'C.UTF-8')     compares by bytes, as all that there are
    CREATE COLLATION d (locale = 'de_DE')       0A000 where the machine has that locale, 22023 where it has not, as in PostgreSQL
    COLLATE pg_catalog."#16400"                 in stored texts alone: by oid

What would compare otherwise than by bytes, by a locale or by ICU, is refused by name.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Final

from pgwire.codecs.settings import STORED_TEXT
from planner import ast
from planner import statements as st
from planner.base.errors import Span, SqlError, not_supported
from planner.base.quoting import quote_identifier
from planner.bind.context import BindContext
from planner.bind.define.placed import PG_CATALOG, creation_schema, schemas_of
from planner.bind.define.table.options import boolean_option, option_text, redundant
from planner.catalog.collations import PG_COLLATION, CollationDef
from planner.conversion.type_names import names_by_oid
from planner.facts import rows
from planner.types.facts import DEFAULT_COLLATION

_ATTRIBUTES: Final = frozenset(
    ("from", "locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version")
)
_BYTEWISE: Final = re.compile(r"C|POSIX|C\.utf-?8", re.IGNORECASE)
_OWN_BYTEWISE: Final = frozenset(("C", "POSIX", "default", "ucs_basic", "C.utf8"))
"""PostgreSQL's own collations that order text by its bytes, as everything here does, as pg_collation has them."""
_ENCODING: Final = 6  # UTF8


def find_collation(context: BindContext, name: ast.Name, span: Span | None) -> int:
    """Return the oid of a collation. Raises SqlError 42704, 3F000, 42501; 0A000 for one of PostgreSQL's own
    that does not order by bytes.
    """
    if context.env.settings is STORED_TEXT and names_by_oid(name):
        return int(name[-1][1:])
    try:
        schemas = schemas_of(context, name)
    except SqlError as error:
        error.span = span
        raise
    for schema in schemas:
        found = context.catalog.collation_named(schema, name[-1])
        if found is not None:
            return found.oid
        if schema == PG_CATALOG and (own := _own(name[-1], span)):
            return own
    raise _missing(name, span)


def _own(name: str, span: Span | None = None) -> int:
    """Return the oid of one of PostgreSQL's own collations, 0 for none. Raises SqlError 0A000."""
    wanted = "C.utf8" if name == "C.UTF-8" else name
    found = next((int(row["oid"]) for row in rows("collations") if row["collname"] == wanted), 0)
    if found and wanted not in _OWN_BYTEWISE:
        raise not_supported(f'collation "{name}"', span=span)
    return found


def _missing(name: ast.Name, span: Span | None = None) -> SqlError:
    return SqlError("42704", f'collation "{".".join(name)}" for encoding "UTF8" does not exist', span=span)


def _users(context: BindContext, verb: str, name: ast.Name) -> CollationDef:
    """Return a collation that a user made. Raises SqlError as ``find_collation``; 0A000 for PostgreSQL's own."""
    found = context.catalog.collation_by_oid(find_collation(context, name, None))
    if found is None:
        raise not_supported(f"{verb} COLLATION of PostgreSQL's own")
    return found


def bind_create(context: BindContext, node: ast.CreateCollation) -> st.CreateCollation:
    """CREATE COLLATION. Raises SqlError 3F000, 42601, 42704, 42P17, 22023, and 0A000 for what would not
    compare by bytes.
    """
    schema = creation_schema(context, node.name, "collation")
    given: dict[str, ast.Option] = {}
    for option in node.options:
        if option.name not in _ATTRIBUTES:
            raise SqlError("42601", f'collation attribute "{option.name}" not recognized', span=option.span)
        if option.name in given:
            raise redundant(option.span)
        given[option.name] = option
    if "locale" in given and not given.keys().isdisjoint(("lc_collate", "lc_ctype")):
        raise _together("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE.")
    if "from" in given and len(given) > 1:
        raise _together("FROM cannot be specified together with any other options.")
    encoding, collate, ctype, version = _copied(context, given["from"]) if "from" in given else _made(given)
    return st.CreateCollation(
        schema=schema,
        name=node.name[-1],
        encoding=encoding,
        collate=collate,
        ctype=ctype,
        version=version,
        if_not_exists=node.if_not_exists,
    )


_Made = tuple[int, str, str, str | None]
"""Encoding, locales and version, as in ``planner.catalog.collations.CollationDef``."""


def _copied(context: BindContext, option: ast.Option) -> _Made:
    copied = option.value
    name = (copied,) if isinstance(copied, str) else copied if isinstance(copied, tuple) else ()
    oid = find_collation(context, name, None)
    if oid == DEFAULT_COLLATION:
        raise SqlError("42P17", 'collation "default" cannot be copied')
    made = context.catalog.collation_by_oid(oid)
    if made is not None:
        return made.encoding, made.collate, made.ctype, None
    own = next(row for row in rows("collations") if int(row["oid"]) == oid)
    return int(own["collencoding"]), own["collcollate"], own["collctype"], None


def _made(given: dict[str, ast.Option]) -> _Made:
    """Return what attributes ask for. Raises SqlError 42601, 42P17, 22023, 0A000."""
    deterministic = "deterministic" not in given or boolean_option(given["deterministic"])
    texts = {
        name: _text(given[name]) for name in ("locale", "lc_collate", "lc_ctype", "version") if name in given
    }
    provider = (option_text(given["provider"]) or "") if "provider" in given else "libc"
    if provider.lower() not in ("libc", "icu"):
        raise SqlError("42P17", f"unrecognized collation provider: {provider}")
    if provider.lower() == "icu":
        if "locale" not in texts:
            raise SqlError("42P17", 'parameter "locale" must be specified')
        raise not_supported("a collation of ICU")
    if "locale" in texts:
        texts["lc_collate"] = texts["lc_ctype"] = texts["locale"]
    for name in ("lc_collate", "lc_ctype"):
        if name not in texts:
            raise SqlError("42P17", f'parameter "{name}" must be specified')
    if not deterministic:
        raise SqlError("0A000", "nondeterministic collations not supported with this provider")
    collate, ctype = texts["lc_collate"], texts["lc_ctype"]
    for locale in (collate, ctype):
        _check_locale(locale)
    return _ENCODING, collate, ctype, texts.get("version")


def _text(option: ast.Option) -> str:
    text = option_text(option)
    if text is None:
        raise SqlError("42601", f"{option.name} requires a parameter")
    return text


def _check_locale(name: str) -> None:
    if _BYTEWISE.fullmatch(name):
        return
    if not name or _is_there(name):
        raise not_supported(f'a collation of the locale "{name}"')
    raise SqlError(
        "22023",
        f'could not create locale "{name}": No such file or directory',
        detail=f'The operating system could not find any locale data for the locale name "{name}".',
    )


def _is_there(name: str) -> bool:
    """Tell whether the machine has a locale, without changing any that is in use."""
    if "\0" in name:
        return False
    made = _libc().newlocale(_ALL_CATEGORIES, name.encode(), None)
    if made:
        _libc().freelocale(made)
    return bool(made)


_ALL_CATEGORIES: Final = (1 << 0) | (1 << 3)  # glibc's LC_CTYPE_MASK | LC_COLLATE_MASK


@functools.cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.newlocale.restype = ctypes.c_void_p
    library.newlocale.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
    library.freelocale.argtypes = (ctypes.c_void_p,)
    library.freelocale.restype = None
    return library


def _together(detail: str) -> SqlError:
    return SqlError("42601", "conflicting or redundant options", detail=detail)


def bind_refresh(context: BindContext, node: ast.RefreshCollation) -> st.RefreshCollation:
    """ALTER COLLATION ... REFRESH VERSION. Raises SqlError 3F000, 42704; 0A000 for a collation that does not
    compare bytes.
    """
    return st.RefreshCollation(object=find_collation(context, node.name, None), name=".".join(node.name))


def altered(context: BindContext, node: ast.AlterCollation) -> CollationDef:
    """Return what ALTER COLLATION is about. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    return _users(context, "ALTER", node.name)


def bind_drop(context: BindContext, node: ast.DropCollation) -> st.DropCollation:
    """DROP COLLATION. Raises SqlError 42704, 3F000, with IF EXISTS notices; 2BP01 for PostgreSQL's own."""
    found: dict[int, str] = {}
    notices: list[str] = []
    for name in node.names:
        try:
            oid = find_collation(context, name, None)
        except SqlError as error:
            if not node.if_exists or error.sqlstate not in ("42704", "3F000"):
                raise
            told = (
                error.message if error.sqlstate == "3F000" else f'collation "{".".join(name)}" does not exist'
            )
            notices.append(f"{told}, skipping")
            continue
        if context.catalog.collation_by_oid(oid) is None:
            shown = quote_identifier(name[-1])
            raise SqlError(
                "2BP01", f"cannot drop collation {shown} because it is required by the database system"
            )
        found.setdefault(oid, ".".join(name))
    return st.DropCollation(
        objects=tuple(found), written=tuple(found.values()), missing=tuple(notices), cascade=node.cascade
    )


def bind_comment(context: BindContext, node: ast.CommentOnCollation) -> st.Comment:
    """COMMENT ON. Raises SqlError 42704, 3F000; 0A000 for PostgreSQL's own."""
    found = _users(context, "COMMENT ON", node.name)
    class_oid: st.CommentClass = PG_COLLATION
    return st.Comment(
        class_oid=class_oid, object_oid=found.oid, sub_id=0, text=node.text, name=".".join(node.name)
    )
