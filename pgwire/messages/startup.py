"""What a start-up packet says: protocol options, session parameters, ``options``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pgwire.errors import RemoteProtocolError

PROTOCOL_OPTION_PREFIX = "_pq_."
MAX_NAME_BYTES: Final = 63
"""Of a role's or database's name."""


def split_options(text: str) -> list[str]:
    """Split at whitespace; a backslash makes the next character literal (libpq manual, options)."""
    words: list[str] = []
    word: list[str] | None = None
    escaped = False
    for c in text:
        if escaped:
            word = [] if word is None else word
            word.append(c)
            escaped = False
        elif c == "\\":
            word = [] if word is None else word
            escaped = True
        elif c.isspace():
            if word is not None:
                words.append("".join(word))
            word = None
        else:
            word = [] if word is None else word
            word.append(c)
    if word is not None:
        words.append("".join(word))
    return words


def parse_options(text: str) -> dict[str, str]:
    """Return the settings of ``-c name=value``, ``-cname=value`` and ``--name=value``; dashes read as ``_``.

    Raises:
        RemoteProtocolError: 42601, fatal, for any other switch.
    """
    settings: dict[str, str] = {}
    words = iter(split_options(text))
    for word in words:
        if word == "-c":
            setting = next(words, "")
        elif word.startswith(("-c", "--")):
            setting = word[2:]
        else:
            setting = ""
        name, equals, value = setting.partition("=")
        if not equals or not name:
            raise RemoteProtocolError(
                f"invalid command-line argument for server process: {word}", sqlstate="42601", fatal=True
            )
        settings[name.replace("-", "_")] = value
    return settings


def protocol_options(parameters: Mapping[str, str]) -> tuple[str, ...]:
    """Return the ``_pq_.`` options a client asks for; this server knows none of them."""
    return tuple(name for name in parameters if name.startswith(PROTOCOL_OPTION_PREFIX))


def session_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return what the database gets to see: see ``backend.Database.connect``.

    Raises:
        RemoteProtocolError: fatal; 28000 without a user, 0A000 for replication, 42601 for bad options.
    """
    if not parameters.get("user"):
        raise RemoteProtocolError(
            "no PostgreSQL user name specified in startup packet", sqlstate="28000", fatal=True
        )
    if parameters.get("replication", "false").lower() not in ("false", "off", "no", "0", "f", "n"):
        raise RemoteProtocolError("replication connections are not supported", sqlstate="0A000", fatal=True)
    found = parse_options(parameters.get("options", ""))
    direct = {name.lower() for name in parameters}
    result = {name: value for name, value in found.items() if name.lower() not in direct}
    for name, value in parameters.items():
        if name not in ("options", "replication") and not name.startswith(PROTOCOL_OPTION_PREFIX):
            result[name] = value
    if not result.get("database"):
        result["database"] = result["user"]
    for key in ("user", "database"):
        result[key] = _cut(result[key])
    return result


def _cut(name: str) -> str:
    """Return a name as PostgreSQL looks it up: its first 63 bytes; what is left of a character that was cut
    through is in no name.
    """
    data = name.encode()
    return name if len(data) <= MAX_NAME_BYTES else data[:MAX_NAME_BYTES].decode("utf-8", "replace")
