"""aclitem: one item of an access control list, as a value of SQL.

    'bob=r*w/alice'      alice lets bob SELECT, and grant it on, and UPDATE
    '=r/alice'           everybody; '"group" name' and '"user" name' may stand before =

A value is its text as PostgreSQL prints it: roles by their names, quoted where they have other characters
than letters, digits and _, letters in the order of lists. Two are equal where that is equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pgwire.codecs import array
from pgwire.give_way import give_way, paced_iter
from pgwire.long.values import run_end
from planner.base.errors import SqlError
from planner.catalog.acl import EVERYBODY, LETTERS, item_text, ordered, quoted_role
from planner.catalog.acl_items import AclItem
from planner.facts import facts
from planner.functions.registry import REGISTRY
from planner.functions.session import NameScope
from planner.functions.values.hash import hash_uint32
from planner.functions.values.reg import named_input

ACLITEM: Final = 1033
ACLITEM_ARRAY: Final = facts().types[ACLITEM].array
ACL_TYPES: Final = frozenset((ACLITEM, ACLITEM_ARRAY))
"""Types that are read by the roles there are."""

_MOST_BYTES: Final = 63
_PACE: Final = 1 << 10  # characters between two looks at the clock
_FIRST_SUPERUSER: Final = 10
_RULE: Final = "R"
"""A right that nobody has had for long, and that lists may still name."""


def acl_input(session: NameScope, oid: int, text: str) -> Any:
    """Read an aclitem, or an array of them. Raises SqlError 22P02 for what is none, 42622, 42704 for a role
    that is not there.
    """
    if oid == ACLITEM:
        return read_item(session, text)
    return array.parse(text, functools.partial(read_item, session))


def input_by_catalog(session: NameScope, oid: int, text: str) -> Any:
    """Read a value of a type that is read by what the catalog has: of one in ``reg.NAMED``, or as ``acl_input``."""
    return acl_input(session, oid, text) if oid in ACL_TYPES else named_input(session, oid, text)


def read_item(session: NameScope, text: str) -> str:
    """Return an item as it prints. ``session``: its catalog has the roles, and it is warned of an item
    without a grantor.
    """

    def oid_of(name: str) -> int:
        role = session.catalog.role(name)
        if role is None:
            raise SqlError("42704", f'role "{name}" does not exist')
        return int(role.oid)

    item, told = parse_item(text, oid_of)
    system = getattr(session, "system", None)
    if not told and system is not None:
        system.warn(f"defaulting grantor to user ID {_FIRST_SUPERUSER}", "0L000")
    return item_text(item, functools.partial(role_name, session))


def role_name(session: NameScope, oid: int) -> str:
    """Return a role as aclitem prints it; by its oid where there is none."""
    role = session.catalog.role_by_oid(oid)
    return str(oid) if role is None else quoted_role(role.name)


def parse_item(text: str, oid_of: Callable[[str], int]) -> tuple[AclItem, bool]:
    """Return an item, and whether its text names the grantor. Raises as ``acl_input``."""
    name, at = _name(text, 0)
    if text[at : at + 1] != "=":
        if name not in ("group", "user"):
            raise SqlError(
                "22P02", f'unrecognized key word: "{name}"', hint='ACL key word must be "group" or "user".'
            )
        name, at = _name(text, at)
        if not name:
            raise SqlError("22P02", "missing name", hint='A name must follow the "group" or "user" key word.')
    if text[at : at + 1] != "=":
        raise SqlError("22P02", 'missing "=" sign')
    letters: set[str] = set()
    grantable: set[str] = set()
    last = ""
    at += 1
    while text[at : at + 1] == "*" or _is_letter(text[at : at + 1]):
        letter = text[at]
        if not at % _PACE:
            give_way()
        if letter == "*":
            grantable.add(last)
        elif letter in LETTERS or letter == _RULE:
            last = "" if letter == _RULE else letter
            letters.add(last)
        else:
            raise SqlError("22P02", f'invalid mode character: must be one of "{LETTERS}"')
        at += 1
    grantee = oid_of(name) if name else EVERYBODY
    told = text[at : at + 1] == "/"
    grantor = _FIRST_SUPERUSER
    if told:
        name, at = _name(text, at + 1)
        if not name:
            raise SqlError("22P02", 'a name must follow the "/" sign')
        grantor = oid_of(name)
    if _behind_spaces(text, at) < len(text):
        raise SqlError("22P02", "extra garbage at the end of the ACL specification")
    return AclItem(
        grantee=grantee, grantor=grantor, letters=ordered(letters), grantable=ordered(grantable)
    ), told


_SPACES: Final = re.compile(r"[ \t\n\r\v\f]*")


def _is_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def _name(text: str, at: int) -> tuple[str, int]:
    """Return a role's name and where the text goes on; "" for none."""
    at = _behind_spaces(text, at)
    found: list[str] = []
    inside = False
    while at < len(text):
        char = text[at]
        if char == '"':
            if text[at + 1 : at + 2] == '"':
                found.append(char)
                at += 1
            else:
                inside = not inside
        elif inside or char == "_" or (char.isascii() and char.isalnum()):
            found.append(char)
        else:
            break
        at += 1
        if not at % _PACE:
            give_way()
        if len(found) > _MOST_BYTES:
            raise SqlError(
                "42622",
                "identifier too long",
                detail=f"Identifier must be less than {_MOST_BYTES + 1} characters.",
            )
    return "".join(found), _behind_spaces(text, at)


def _behind_spaces(text: str, at: int) -> int:
    return run_end(_SPACES, text, at)


# --- functions -------------------------------------------------------------------------------------


def items_of(session: NameScope, items: Iterable[str | None]) -> Iterable[AclItem]:
    """Yield a list's items; a role that is gone is what its oid says. Raises SqlError 22004 for a NULL among them."""

    def oid_of(name: str) -> int:
        role = session.catalog.role(name)
        return role.oid if role is not None else int(name) if name.isdecimal() else EVERYBODY

    for text in paced_iter(items):
        if text is None:
            raise SqlError("22004", "ACL arrays must not contain null values")
        yield parse_item(text, oid_of)[0]


def contains(session: NameScope, acl: Sequence[str | None], item: str) -> bool:
    """SQL's ``aclcontains``: whether some item of a list gives the same role, by the same grantor, at least
    the same.
    """
    (wanted,) = items_of(session, (item,))
    return any(
        (one.grantee, one.grantor) == (wanted.grantee, wanted.grantor)
        and set(wanted.letters) <= set(one.letters)
        and set(wanted.grantable) <= set(one.grantable)
        for one in items_of(session, acl)
    )


def _no_longer(name: str) -> Callable[[Any, str], Any]:
    def refuse(_acl: Any, _item: str) -> Any:
        raise SqlError("0A000", f"{name} is no longer supported")

    return refuse


def _sum(session: NameScope, item: str) -> int:
    """Return the number that an item is hashed by: its rights as bits, those that may be granted on in the
    upper half, and its roles.
    """
    (one,) = items_of(session, (item,))
    rights = sum(1 << LETTERS.index(letter) for letter in one.letters)
    options = sum(1 << LETTERS.index(letter) for letter in one.grantable)
    return rights + (options << 16) + one.grantee + one.grantor & 0xFFFFFFFF


def _hash(session: NameScope, item: str) -> int:
    found = _sum(session, item)
    return found - (1 << 32) if found >> 31 else found


def _hash_extended(session: NameScope, item: str, seed: int) -> int:
    found = _sum(session, item)
    if not seed:
        return found
    high, low = hash_uint32(found, seed & (1 << 64) - 1)
    whole = high << 32 | low
    return whole - (1 << 64) if whole >> 63 else whole


def _register() -> None:
    python = REGISTRY.python
    python("aclitemeq(aclitem,aclitem)", lambda a, b: a == b)
    python("aclcontains(_aclitem,aclitem)", contains, needs_session=True)
    for name in ("aclinsert", "aclremove"):
        python(f"{name}(_aclitem,aclitem)", _no_longer(name))
    python("hash_aclitem(aclitem)", _hash, needs_session=True)
    python("hash_aclitem_extended(aclitem,int8)", _hash_extended, needs_session=True)


_register()
