"""Access control lists: who has granted what to whom, and what follows from it (manual 5.7 and chapter 22).

    bob=ar*/alice      alice let bob INSERT (a) and SELECT (r), and grant SELECT on
    =r/alice           alice let everybody SELECT

What a role may do comes from items for it, for everybody (grantee 0), and for roles whose rights it inherits
as their member. An object without a list has its kind's default one. All of it is values and pure functions;
where lists are kept is the catalog's business (``planner.catalog.AclDef``), what an item and a membership are
is in ``planner.catalog.acl_items``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from planner.base.errors import SqlError
from planner.catalog.acl_items import AclItem
from planner.catalog.objects import RoleDef

LETTERS = "arwdDxtXUCTcsA"  # in the order in which lists print them
WORDS: Mapping[str, str] = {
    "INSERT": "a", "SELECT": "r", "UPDATE": "w", "DELETE": "d", "TRUNCATE": "D", "REFERENCES": "x", "TRIGGER": "t",
    "EXECUTE": "X", "USAGE": "U", "CREATE": "C", "TEMPORARY": "T", "TEMP": "T", "CONNECT": "c", "SET": "s",
    "ALTER SYSTEM": "A",
}  # fmt: skip
ALL: Mapping[str, str] = {
    "relation": "arwdDxt", "column": "arwx", "sequence": "rwU", "schema": "UC", "database": "CTc", "type": "U",
    "function": "X", "language": "U", "large object": "rw", "foreign-data wrapper": "U", "foreign server": "U",
    "parameter": "sA",
}  # fmt: skip
EVERYBODY = 0
READ_ALL_DATA, WRITE_ALL_DATA = 6181, 6182  # pg_read_all_data, pg_write_all_data
CHECKPOINT = 4544  # pg_checkpoint
READ_ALL_STATS = 3375  # pg_read_all_stats
READ_SERVER_FILES, WRITE_SERVER_FILES = 4569, 4570
DATABASE_OWNER = 6171  # pg_database_owner

RoleOf = Callable[[int], RoleDef | None]


def ordered(letters: Iterable[str]) -> str:
    """Return letters in the order in which lists print them."""
    wanted = set(letters)
    return "".join(letter for letter in LETTERS if letter in wanted)


def default_acl(kind: str, owner: int, *, public: bool = False) -> tuple[AclItem, ...]:
    """Return the list of an object that has none; ``public``: a schema that everybody may use."""
    if kind == "column":
        return ()
    own = AclItem(grantee=owner, grantor=owner, letters=ordered(ALL[kind]))
    if kind in ("type", "language"):
        return AclItem(grantee=EVERYBODY, grantor=owner, letters="U"), own
    if kind == "function":
        return AclItem(grantee=EVERYBODY, grantor=owner, letters="X"), own
    if kind == "database":
        return AclItem(grantee=EVERYBODY, grantor=owner, letters="Tc"), own
    if public:
        return own, AclItem(grantee=EVERYBODY, grantor=owner, letters="U")
    return (own,)


# --- roles ----------------------------------------------------------------------------------------


def inherited(role: RoleDef, role_of: RoleOf) -> frozenset[int]:
    """Return the roles whose rights a role has: itself, and what it inherits as their member."""
    return _closure(role, role_of, inheriting=True)


def nearest(role: RoleDef, role_of: RoleOf) -> tuple[int, ...]:
    """Return what ``inherited`` does, the nearest first: the role, what it is a member of, by oid, then what
    these are members of.
    """
    found = [role]
    for member in found:
        above = sorted(member.member_of, key=lambda m: m.role) if member.inherit else ()
        for membership in above:
            other = role_of(membership.role)
            if other is not None and all(other.oid != known.oid for known in found):
                found.append(other)
    return tuple(known.oid for known in found)


def _whose(oid: int, role_of: RoleOf) -> frozenset[int]:
    """Return the roles whose rights one has, by its oid; 0, everybody, has its own alone."""
    role = role_of(oid)
    return frozenset((oid,)) if role is None else inherited(role, role_of)


def memberships(role: RoleDef, role_of: RoleOf) -> frozenset[int]:
    """Return the roles that a role is, directly or not, a member of, itself included: those it may SET ROLE to."""
    return _closure(role, role_of, inheriting=False)


def _closure(role: RoleDef, role_of: RoleOf, *, inheriting: bool) -> frozenset[int]:
    found = {role.oid}
    open_ = [role]
    while open_:
        member = open_.pop()
        if inheriting and not member.inherit:
            continue
        for membership in member.member_of:
            other = role_of(membership.role)
            if other is not None and other.oid not in found:
                found.add(other.oid)
                open_.append(other)
    return frozenset(found)


def may_admit(role: RoleDef, to: int, role_of: RoleOf) -> bool:
    """Whether a role may make others members of the role ``to``: it, or what it is a member of, has the admin
    option.
    """
    if role.superuser:
        return True
    for oid in memberships(role, role_of):
        member = role_of(oid)
        if member is not None and any(m.role == to and m.admin for m in member.member_of):
            return True
    return False


# --- rights -----------------------------------------------------------------------------------------


def held(items: Iterable[AclItem], roles: frozenset[int]) -> str:
    """Return the letters that any of ``roles`` has."""
    letters: set[str] = set()
    for item in items:
        if item.grantee == EVERYBODY or item.grantee in roles:
            letters.update(item.letters)
    return ordered(letters)


def grantable(items: Iterable[AclItem], roles: frozenset[int], owner: int, kind: str) -> str:
    """Return the letters that any of ``roles`` may grant; an owner always may, whatever it lets itself do."""
    if owner in roles:
        return ordered(ALL[kind])
    return ordered(letter for item in items if item.grantee in roles for letter in item.grantable)


def best_grantor(
    items: Sequence[AclItem], roles: Sequence[int], owner: int, kind: str, wanted: str
) -> tuple[int, str]:
    """Return as whom a role grants that has the rights of ``roles``, itself the first of them: the first that
    may grant all or most of ``wanted``; and what that may.
    """
    best, options = roles[0], ""
    for candidate in roles:
        may = ALL[kind] if candidate == owner else grantable(items, frozenset((candidate,)), owner, kind)
        may = ordered(set(may) & set(wanted))
        if len(may) > len(options):
            best, options = candidate, may
    return best, options


# --- changes ----------------------------------------------------------------------------------------


def grant(
    items: Sequence[AclItem],
    owner: int,
    grantor: int,
    grantee: int,
    letters: str,
    *,
    option: RoleOf | None,
) -> tuple[AclItem, ...]:
    """Return a list with a grant added; ``option``: with grant option, and how roles are looked up.

    Raises SqlError 0LP01 for a grant back to who one's own option is from.
    """
    if option is not None:
        roles = _whose(grantor, option)
        if owner not in roles:
            _refuse_circle(items, owner, roles, grantee, letters, option)
    made = AclItem(grantee=grantee, grantor=grantor, letters="")
    result = list(items)
    at = next((i for i, it in enumerate(result) if (it.grantee, it.grantor) == (grantee, grantor)), None)
    if at is None:
        result.append(made)
        at = len(result) - 1
    old = result[at]
    result[at] = replace(
        old,
        letters=ordered(old.letters + letters),
        grantable=ordered(old.grantable + ("" if option is None else letters)),
    )
    return tuple(result)


def _refuse_circle(
    items: Sequence[AclItem],
    owner: int,
    grantors: Collection[int],
    grantee: int,
    letters: str,
    role_of: RoleOf,
) -> None:
    """Options may not come back to who they are from, or both could keep each other's: a grantor has to have
    its own without the grantee's.
    """
    left = tuple(items)
    while (theirs := next((i for i in left if i.grantee == grantee and i.grantable), None)) is not None:
        left = revoke(
            left, owner, theirs.grantor, grantee, theirs.letters,
            option_only=False, cascade=True, role_of=role_of,
        )  # fmt: skip
    if set(letters) - {x for item in left if item.grantee in grantors for x in item.grantable}:
        raise SqlError("0LP01", "grant options cannot be granted back to your own grantor")


def revoke(
    items: Sequence[AclItem],
    owner: int,
    grantor: int,
    grantee: int,
    letters: str,
    *,
    option_only: bool,
    cascade: bool,
    role_of: RoleOf,
) -> tuple[AclItem, ...]:
    """Return a list without what a grantor has granted.

    What the grantee has granted on goes with its option: with ``cascade``, else SqlError 2BP01. It stays
    where the grantee has the option still: of another grantor, of a role it inherits from, or as the owner.
    """
    result: list[AclItem] = []
    lost = ""
    for item in items:
        if (item.grantee, item.grantor) == (grantee, grantor):
            lost = ordered(set(item.grantable) & set(letters))
            kept = item.letters if option_only else ordered(set(item.letters) - set(letters))
            item = replace(item, letters=kept, grantable=ordered(set(item.grantable) - set(letters)))
            if not item.letters:
                continue
        result.append(item)
    left: tuple[AclItem, ...] = tuple(result)
    roles = _whose(grantee, role_of)
    if owner in roles:  # whose options are its own
        return left
    lost = ordered(set(lost) - {x for item in left if item.grantee in roles for x in item.grantable})
    for item in items:
        if item.grantor == grantee and set(item.letters) & set(lost):
            if not cascade:
                raise SqlError("2BP01", "dependent privileges exist", hint="Use CASCADE to revoke them too.")
            left = revoke(
                left, owner, grantee, item.grantee, lost, option_only=False, cascade=True, role_of=role_of
            )
    return left


def reowned(items: Sequence[AclItem], old: int, new: int) -> tuple[AclItem, ...]:
    """Return the list of an object that another role owns now: what was the old owner's is the new one's."""
    result: tuple[AclItem, ...] = ()
    for item in items:
        grantee = new if item.grantee == old else item.grantee
        grantor = new if item.grantor == old else item.grantor
        result = grant(result, new, grantor, grantee, item.letters, option=None)
        last = next(i for i, it in enumerate(result) if (it.grantee, it.grantor) == (grantee, grantor))
        merged = replace(result[last], grantable=ordered(result[last].grantable + item.grantable))
        result = (*result[:last], merged, *result[last + 1 :])
    return result


def quoted_role(name: str) -> str:
    """Return a role's name as items print it: quoted where it has other characters than letters, digits and _."""
    if all(char == "_" or (char.isascii() and char.isalnum()) for char in name):
        return name
    return '"' + name.replace('"', '""') + '"'


def item_text(item: AclItem, name: Callable[[int], str]) -> str:
    """Print an item as aclitem does; ``name`` gives a role's, quoted if need be."""
    letters = "".join(letter + ("*" if letter in item.grantable else "") for letter in item.letters)
    grantee = "" if item.grantee == EVERYBODY else name(item.grantee)
    return f"{grantee}={letters}/{name(item.grantor)}"
