"""Access rules in pg_hba.conf's form: who may connect to which database from where, and how they prove who they are.

    # type   database   user        address         method
    local    all        all                         trust
    hostssl  shop       alice,+staff 10.0.0.0/8     scram-sha-256
    host     all        all          0.0.0.0/0      reject

The first rule that fits decides; where none fits, nobody comes in (manual 21.1). Read when the server starts
and again at SIGHUP; a file with an error is told of and leaves the rules as they were.

Lines and words are cut as PostgreSQL cuts them: a backslash joins a line to the next one, a comment too, and
nothing but a line feed ends one; a name may be quoted in part (``+"the staff"``), one that begins with a
quote is no keyword. A blank before a comma is an error.

Types are local, host, hostssl and hostnossl; databases names, all, sameuser and samerole; users names, all
and +role; addresses all, an address with a mask or its length; methods trust, reject and scram-sha-256. What
PostgreSQL knows besides (host names, regular expressions, @files, options of a method, other methods) is an
error that names it. There is no replication: a rule for it fits nothing.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias, cast

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"
Kind: TypeAlias = Literal["local", "host", "hostssl", "hostnossl"]
Method: TypeAlias = Literal["trust", "reject", "scram-sha-256"]
IsMember: TypeAlias = Callable[[str], bool]

KINDS: Final = ("local", "host", "hostssl", "hostnossl")
METHODS: Final = ("trust", "reject", "scram-sha-256")
_BLANK: Final = " \t\r"
_LENGTH: Final = re.compile(r"[0-9]{1,3}")  # of a mask


class AccessRulesError(ValueError):
    """A file of access rules cannot be used; names file and line."""


@dataclass(frozen=True, slots=True)
class Word:
    """A name of a rule; a quoted one is never a keyword."""

    text: str
    quoted: bool = False

    def says(self, keyword: str) -> bool:
        """Tell whether this is the keyword."""
        return not self.quoted and self.text == keyword


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line. ``networks`` None: any address, or none for ``local``."""

    line: int
    kind: Kind
    databases: tuple[Word, ...]
    users: tuple[Word, ...]
    network: Network | None
    method: Method

    def fits(self, user: str, database: str, peer: Peer, is_member: IsMember) -> bool:
        """Tell whether the rule is about this connection. ``is_member(role)``: whether the user is, or is in,
        that role.
        """
        return (
            self._from(peer)
            and any(_is_database(word, user, database, is_member) for word in self.databases)
            and any(_is_user(word, user, is_member) for word in self.users)
        )

    def _from(self, peer: Peer) -> bool:
        if peer.address is None:
            return self.kind == "local"
        if self.kind == "local" or self.kind == ("hostnossl" if peer.tls else "hostssl"):
            return False
        return self.network is None or peer.address in self.network


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a connection comes from; ``address`` None: a Unix socket."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
    tls: bool = False

    @classmethod
    def of(cls, text: str, tls: bool) -> Peer:
        """Read ``host:port``, ``[host]:port`` or ``local``; an IPv4 address in IPv6's form counts as IPv4."""
        if text == "local":
            return cls(None)
        address = ipaddress.ip_address(text.rpartition(":")[0].strip("[]").partition("%")[0])
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return cls(mapped or address, tls)

    def __str__(self) -> str:
        """As PostgreSQL's messages name it."""
        return "[local]" if self.address is None else str(self.address)


def _is_database(word: Word, user: str, database: str, is_member: IsMember) -> bool:
    if word.says("all"):
        return True
    if word.says("sameuser"):
        return database == user
    if word.says("samerole") or word.says("samegroup"):
        return is_member(database)
    return word.text == database and not word.says("replication")


def _is_user(word: Word, user: str, is_member: IsMember) -> bool:
    if word.says("all"):
        return True
    if not word.quoted and word.text.startswith("+"):
        return is_member(word.text[1:])
    return word.text == user


def find(rules: Sequence[Rule], user: str, database: str, peer: Peer, is_member: IsMember) -> Rule | None:
    """Return the first rule that fits, None if none does."""
    return next((rule for rule in rules if rule.fits(user, database, peer, is_member)), None)


def only_trust(rules: Sequence[Rule]) -> bool:
    """Tell whether whoever comes in from another machine does so unproved."""
    return not any(rule.method == "scram-sha-256" and rule.kind != "local" for rule in rules)


def read(path: str) -> tuple[Rule, ...]:
    """Return the rules of a file. Raises AccessRulesError."""
    try:
        text = Path(path).read_bytes().decode()  # "\n" alone ends a line
    except (OSError, UnicodeDecodeError) as error:
        raise AccessRulesError(f"cannot read {path}: {error}") from None
    found = []
    for number, line in _lines(text):
        try:
            fields = _fields(line)
            if fields:
                found.append(_rule(number, fields))
        except ValueError as error:
            raise AccessRulesError(f"{path}, line {number}: {error}") from None
    if not found:
        raise AccessRulesError(f"{path} has no rule, so that nobody could connect")
    return tuple(found)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines and their numbers; a backslash at its end joins one, a comment too, to the next, as
    PostgreSQL reads them.
    """
    first, joined = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        first = first or number
        if line.endswith("\\"):
            joined += line[:-1]
            continue
        yield first, joined + line
        first, joined = 0, ""
    if joined:
        yield first, joined


def _fields(line: str) -> list[tuple[Word, ...]]:
    """Split a line into its columns, each a list of names separated by commas. Blanks may follow a comma, and
    none may come before it.
    """
    columns: list[tuple[Word, ...]] = []
    at, joined = 0, False
    while True:
        while at < len(line) and line[at] in _BLANK:
            at += 1
        if at == len(line) or line[at] == "#":
            break
        if line[at] == ",":
            raise ValueError("a comma without a name before it")
        word, at = _word(line, at)
        if joined:
            columns[-1] = (*columns[-1], word)
        else:
            columns.append((word,))
        joined = at < len(line) and line[at] == ","
        at += joined
    if joined:
        raise ValueError("a comma without a name behind it")
    return columns


def _word(line: str, at: int) -> tuple[Word, int]:
    """Read a name, of which any part may be quoted (``+"the staff"``); return it and where it ends. What
    begins with a quote is no keyword.
    """
    quoted, parts, inside = line[at] == '"', [], False
    while at < len(line):
        char = line[at]
        if char == '"':
            if inside and line[at + 1 : at + 2] == '"':
                parts.append(char)
                at += 1
            else:
                inside = not inside
        elif not inside and (char in _BLANK or char in ",#"):
            break
        else:
            parts.append(char)
        at += 1
    if inside:
        raise ValueError("a quoted name does not end")
    return Word("".join(parts), quoted), at


def _rule(line: int, fields: list[tuple[Word, ...]]) -> Rule:
    kind = _single(fields[0], "type").text
    if kind.startswith("include"):
        raise ValueError(f"{kind} is not supported")
    if kind not in KINDS:
        raise ValueError(f'type "{kind}" is not one of {", ".join(KINDS)}')
    if len(fields) < 3:
        raise ValueError("database and user are missing")
    for word in (*fields[1], *fields[2]):
        if not word.quoted and word.text.startswith(("@", "/")):
            raise ValueError(f'"{word.text}": files and regular expressions of names are not supported')
    rest = [_single(field, "address or method") for field in fields[3:]]
    network: Network | None = None
    if kind != "local":
        if not rest:
            raise ValueError("the address is missing")
        address = rest.pop(0)
        if not address.says("all"):
            separate = "/" not in address.text and rest and rest[0].text not in METHODS
            network = _network(address.text, rest.pop(0).text if separate else None)
    if not rest:
        raise ValueError("the method is missing")
    method = rest[0].text
    if method not in METHODS:
        raise ValueError(f'method "{method}" is not supported; there are {", ".join(METHODS)}')
    if len(rest) > 1:
        raise ValueError(f'"{rest[1].text}": options of a method are not supported')
    return Rule(
        line=line, kind=cast("Kind", kind), databases=fields[1], users=fields[2], network=network,
        method=cast("Method", method),
    )  # fmt: skip


def _single(field: tuple[Word, ...], what: str) -> Word:
    if len(field) != 1:
        raise ValueError(f"one {what} is asked for, not a list")
    return field[0]


def _network(address: str, mask: str | None) -> Network:
    base, slash, length = address.partition("/")
    if not slash and mask is None:
        raise ValueError(
            f'"{address}": an address needs the length of its mask, host names are not supported'
        )
    try:
        if slash and not _LENGTH.fullmatch(length):
            raise ValueError(length)
        bits = int(length) if mask is None else _ones(mask, ipaddress.ip_address(base).version)
        return ipaddress.ip_network((base, bits), strict=False)
    except ValueError:
        shown = address if mask is None else f"{address} {mask}"
        raise ValueError(f'"{shown}" is no address with a mask') from None


def _ones(mask: str, version: int) -> int:
    """Return how many bits a mask begins with. Raises ValueError where it has others, too: a mask of hosts
    (0.0.0.255) is none.
    """
    written = ipaddress.ip_address(mask)
    zeros = int(written) ^ int.from_bytes(b"\xff" * len(written.packed))
    if written.version != version or zeros & (zeros + 1):
        raise ValueError(mask)
    return written.max_prefixlen - zeros.bit_length()
