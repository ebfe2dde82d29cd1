"""What an object store's answer means: what is short, and whether asking again may help.

    the store's name for it     SLOW_DOWN, NoSuchBucket, QuotaExceeded ...     where the answer has a body
    the status                  429, 503, 507 ...                              where it has none (HEAD)
    a number of errno           the local copy could not be written            ``persist.trouble``
    anything else               refused: 58030, once

pyarrow tells all of it as text alone. It asks again by itself, three times in all, where the connection
breaks, a time-out passes or the store answers 5xx: what is ``passing`` here is asked again on top of that
only where it has not done so (``repeated``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from txn.base.errors import TroubleKind
from txn.persist.trouble import number_in, said

Meaning: TypeAlias = Literal[
    "busy", "full", "conflict", "denied", "no bucket", "no object", "away", "system", "refused"
]


@dataclass(frozen=True, slots=True)
class Answer:
    """``kind``: decides the SQLSTATE. ``passing``: the same may succeed later. ``repeated``: pyarrow has
    tried it again.
    """

    meaning: Meaning
    kind: TroubleKind
    passing: bool
    repeated: bool = False


_BUSY: Final = Answer("busy", "requests", True)
_BUSY_REPEATED: Final = Answer("busy", "requests", True, True)
_AWAY: Final = Answer("away", "io", True, True)
_AWAY_ONCE: Final = Answer("away", "io", True)
_FULL: Final = Answer("full", "space", False)
_CONFLICT: Final = Answer("conflict", "io", True)
_DENIED: Final = Answer("denied", "io", False)
_NO_BUCKET: Final = Answer("no bucket", "io", False)
_NO_OBJECT: Final = Answer("no object", "io", False)
_REFUSED: Final = Answer("refused", "io", False)


def _named(answer: Answer, names: Iterable[str]) -> dict[str, Answer]:
    return {_plain(name): answer for name in names}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


NAMES: Final = {
    **_named(_BUSY_REPEATED, ("SLOW_DOWN", "SERVICE_UNAVAILABLE", "THROTTLING", "RequestThrottled", "RequestLimitExceeded")),
    **_named(_BUSY, ("TooManyRequests", "rateLimitExceeded", "userRateLimitExceeded", "ServerBusy")),
    **_named(_FULL, ("QuotaExceeded", "StorageFull", "InsufficientStorage", "XMinioStorageFull", "InsufficientCapacity",
                     "ServiceQuotaExceededException")),
    **_named(_CONFLICT, ("OperationAborted", "ConditionalRequestConflict", "OperationConflict")),
    **_named(_DENIED, ("ACCESS_DENIED", "InvalidAccessKeyId", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "ExpiredToken",
                       "INVALID_SIGNATURE", "UNRECOGNIZED_CLIENT", "MISSING_AUTHENTICATION_TOKEN", "INVALID_CLIENT_TOKEN_ID")),
    **_named(_NO_BUCKET, ("NO_SUCH_BUCKET",)),
    **_named(_NO_OBJECT, ("NO_SUCH_KEY",)),
    **_named(_AWAY, ("NETWORK_CONNECTION", "REQUEST_TIMEOUT", "INTERNAL_FAILURE", "InternalError", "REQUEST_EXPIRED",
                     "REQUEST_TIME_TOO_SKEWED")),
}  # fmt: skip
"""The names of answers, as S3, its kin and pyarrow spell them; without case and underscores."""

STATUSES: Final = {
    403: _DENIED, 401: _DENIED, 408: _AWAY, 409: _CONFLICT, 429: _BUSY, 500: _AWAY, 502: _AWAY, 503: _BUSY_REPEATED,
    504: _AWAY, 507: _FULL, 509: _BUSY_REPEATED,
}  # fmt: skip
"""Statuses of answers without a name."""

_NAME: Final = re.compile(r"AWS Error (\w+)|ExceptionName: (\w+)|(?:UnknownError|reason)[\"':= ]+(\w+)")
_STATUS: Final = re.compile(r"HTTP status (?:code )?(\d{3})")
_BODILESS: Final = "No response body"
_CURL: Final = re.compile(r"curlCode: \d+")
_RESOLVING: Final = re.compile(
    r"[Tt]imed? ?out|[Tt]imeout|[Cc]onnection (?:refused|reset)|[Cc]ould ?n[o']t (?:connect|resolve)"
)


def answer_of(error: OSError) -> Answer:
    """Return what an error of pyarrow's file system means, or of the local file that is written meanwhile."""
    if error.errno:
        meant = said(error.errno)
        return Answer("system", meant.kind, meant.passing)
    text = str(error)
    for found in _NAME.finditer(text):
        known = NAMES.get(_plain(next(filter(None, found.groups()))))
        if known is not None:
            return known
    status = _STATUS.search(text)
    if status is not None:
        number = int(status.group(1))
        if number == 429 and _BODILESS in text:
            return _BUSY_REPEATED
        return STATUSES.get(number, _AWAY if number >= 500 else _REFUSED)
    if _CURL.search(text):
        return _AWAY
    number_told = number_in(text)
    if number_told is not None:
        meant = said(number_told)
        return Answer("system", meant.kind, meant.passing)
    return _AWAY_ONCE if _RESOLVING.search(text) else _REFUSED
