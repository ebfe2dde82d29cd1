"""to_ascii: what is left of a text's bytes when they are taken for those of an encoding of one byte, and its
letters lose their marks.

    to_ascii('Grüße', 'LATIN1')     the bytes of UTF8, each by itself: Gr A1/4 ...   as in PostgreSQL, whose databases are in UTF8, too

Below 128 bytes stay as they are. Of the others each table has one character; before its first one there is a blank.
"""

from __future__ import annotations

from typing import Final

from pgwire.codecs.text.encodings import NAMES, canonical
from pgwire.long.values import decoded, encoded
from planner.base.errors import SqlError
from planner.base.large import foresee
from planner.functions.registry import REGISTRY

_LATIN: Final = "AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"
_CENTRAL: Final = "RAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt"
_TABLES: Final = {
    "LATIN1": "  cL Y  \"Ca  -R     'u .,      ?" + _LATIN,
    "LATIN2": ' A L LS "SSTZ-ZZ a,l\'ls ,sstz"zz' + _CENTRAL + ".",
    "LATIN9": "  cL YS sCa  -R     Zu .z   EeY?" + _LATIN,
    "WIN1250": '  \' "    %S<STZZ `\'"".--  s>stzz   L A  "CS  -RZ  ,l\'u .,as L"lz' + _CENTRAL + " ",
}
"""By encoding, the characters of the last bytes there are."""
_MAPS: Final = {
    name: bytes([*range(128), *[32] * (128 - len(table)), *table.encode("ascii")])
    for name, table in _TABLES.items()
}


def _ascii(text: str, name: str) -> str:
    found = _MAPS.get(name)
    if found is None:
        raise SqlError("0A000", f"encoding conversion from {name} to ASCII not supported")
    foresee(2 * len(text))
    return decoded(encoded(text).translate(found))


def by_name(text: str, encoding: str) -> str:
    """SQL's ``to_ascii`` of a named encoding. Raises SqlError 42704 for one that there is not, 0A000 for one
    without a table.
    """
    found = canonical(encoding)
    if found is None:
        raise SqlError("42704", f"{encoding} is not a valid encoding name")
    return _ascii(text, found)


def by_number(text: str, encoding: int) -> str:
    """SQL's ``to_ascii`` of an encoding's number. Raises as ``by_name``."""
    if not 0 <= encoding < len(NAMES):
        raise SqlError("42704", f"{encoding} is not a valid encoding code")
    return _ascii(text, NAMES[encoding])


def of_database(text: str) -> str:
    """SQL's ``to_ascii``: databases are in UTF8, which it has no table for."""
    return _ascii(text, "UTF8")


def _register() -> None:
    REGISTRY.python("to_ascii(text)", of_database)
    REGISTRY.python("to_ascii(text,name)", by_name)
    REGISTRY.python("to_ascii(text,int4)", by_number)


_register()
