"""Frames into messages: the frontend's and, for the client side, the backend's.

The functions that the server's hot path calls (``parse``, ``bind``, ``execute``, ``named``, ``query``) read
straight from the receive buffer and return plain tuples; ``frontend`` wraps them into message values.

Contract of all of them: ``data[start:stop]`` is exactly the payload of one frame; bytes behind ``stop``
belong to someone else. Malformed payloads raise ``RemoteProtocolError`` (08P01; 22021 and 22P05 for bytes that
are no text), not fatal, since framing is intact. The message texts are PostgreSQL's. Texts are UTF-8 unless
``read``, made by ``reader``, says otherwise; it is asked only for texts that are not empty.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias, cast

from pgwire import messages as m
from pgwire.backend import FieldDescription, TransactionStatus
from pgwire.codecs.errors import DataError
from pgwire.codecs.text.encodings import UTF8, Encoding
from pgwire.errors import ErrorReport, RemoteProtocolError

_UINT16 = Struct(">H")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_FIELD = Struct(">IhIhih")

_NO_DATA_LEFT: Final = "insufficient data left in message"
_TRAILING: Final = "invalid message format"
_NO_NUL: Final = "invalid string in message"

LONG_TEXT_BYTES: Final = 1 << 16
MOST_ARGUMENTS: Final = 100
"""That a function may have (PostgreSQL's FUNC_MAX_ARGS)."""
MAX_CANCEL_KEY_BYTES: Final = 256  # manual 55.7, of version 18

_PLAIN_FORMATS: Final[dict[bytes, tuple[int, ...]]] = {
    b"\0\0": (),
    b"\0\1\0\0": (0,),
    b"\0\1\0\1": (1,),
}


Read: TypeAlias = Callable[[bytes], str]
"""From bytes of the client to the text they are. Raises RemoteProtocolError 22021, 22P05."""


def reader(encoding: Encoding) -> Read:
    """Return the function that reads texts of a client's encoding."""

    def read(data: bytes) -> str:
        try:
            return encoding.decode(data)
        except DataError as error:
            raise RemoteProtocolError(error.message, sqlstate=error.sqlstate) from None

    return read


_careful_utf8: Final = reader(UTF8)


def utf8(data: bytes) -> str:
    """Read UTF-8: the usual case, at the price of one call."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _careful_utf8(data)


def _cstring(data: bytes, start: int, stop: int, read: Read = utf8) -> tuple[str, int]:
    """Return the NUL-terminated text at ``start`` and the offset behind it."""
    try:
        end = data.index(0, start, stop)
    except ValueError:
        raise RemoteProtocolError(_NO_NUL) from None
    if end - start > LONG_TEXT_BYTES and read is utf8:
        try:
            return str(memoryview(data)[start:end], "utf-8"), end + 1  # without a copy of the bytes
        except UnicodeDecodeError:
            pass  # said as of any other
    return (read(data[start:end]) if end > start else ""), end + 1


def finish(pos: int, stop: int) -> None:
    """Check that the payload ended where reading ended."""
    if pos != stop:
        raise RemoteProtocolError(_TRAILING if pos < stop else _NO_DATA_LEFT)


def query(data: bytes, start: int, stop: int, read: Read = utf8) -> str:
    """Return the text of Query."""
    sql, pos = _cstring(data, start, stop, read)
    finish(pos, stop)
    return sql


def parse(data: bytes, start: int, stop: int, read: Read = utf8) -> tuple[str, str, tuple[int, ...]]:
    """Return statement name, text and parameter oids of Parse."""
    name, pos = _cstring(data, start, stop, read)
    sql, pos = _cstring(data, pos, stop, read)
    if stop - pos < 2:
        raise RemoteProtocolError(_NO_DATA_LEFT)
    count = _UINT16.unpack_from(data, pos)[0]
    finish(pos + 2 + 4 * count, stop)
    return name, sql, (struct.unpack_from(f">{count}I", data, pos + 2) if count else ())


def _formats(data: bytes, pos: int, stop: int) -> tuple[tuple[int, ...], int]:
    """Return a list of format codes and the offset behind it; a code is 0 or 1, else 22023."""
    if stop - pos < 2:
        raise RemoteProtocolError(_NO_DATA_LEFT)
    count = _UINT16.unpack_from(data, pos)[0]
    end = pos + 2 + 2 * count
    if end > stop:
        raise RemoteProtocolError(_NO_DATA_LEFT)
    codes: tuple[int, ...] = struct.unpack_from(f">{count}h", data, pos + 2)
    for code in codes:
        if code not in (0, 1):
            raise RemoteProtocolError(f"unsupported format code: {code}", sqlstate="22023")
    return codes, end


def bind(
    data: bytes, start: int, stop: int, read: Read = utf8
) -> tuple[str, str, tuple[int, ...], list[bytes | None], tuple[int, ...]]:
    """Return portal, statement, parameter formats, parameters and result formats of Bind."""
    try:
        # The usual shapes in one go: names are empty or short, formats all text or all binary. Reading may
        # run past ``stop`` into the next frame; then ``pos`` does too, and the last check sees it.
        end = data.index(0, start, stop)
        portal = read(data[start:end]) if end > start else ""
        pos = end + 1
        end = data.index(0, pos, stop)
        statement = read(data[pos:end]) if end > pos else ""
        pos = end + 1
        param_formats = _PLAIN_FORMATS.get(data[pos : pos + 2])
        if param_formats is not None:
            pos += 2
        else:
            param_formats, pos = _formats(data, pos, stop)
        count = _UINT16.unpack_from(data, pos)[0]
        pos += 2
        params: list[bytes | None] = []
        for _ in range(count):
            length = _INT32.unpack_from(data, pos)[0]
            pos += 4
            if length >= 0:
                end = pos + length
                params.append(data[pos:end])
                pos = end
            elif length == -1:
                params.append(None)
            else:
                raise RemoteProtocolError(_NO_DATA_LEFT)
            if pos > stop:
                raise RemoteProtocolError(_NO_DATA_LEFT)
        result_formats = _PLAIN_FORMATS.get(data[pos:stop])
        if result_formats is None:
            result_formats, pos = _formats(data, pos, stop)
            finish(pos, stop)
    except ValueError:
        raise RemoteProtocolError(_NO_NUL) from None
    except struct.error:
        raise RemoteProtocolError(_NO_DATA_LEFT) from None
    given = len(param_formats)
    if given > 1 and given != count:
        raise RemoteProtocolError(f"bind message has {given} parameter formats but {count} parameters")
    return portal, statement, param_formats, params, result_formats


def execute(data: bytes, start: int, stop: int, read: Read = utf8) -> tuple[str, int]:
    """Return portal and row limit of Execute; a negative limit means none, as in PostgreSQL."""
    if stop - start == 5 and data[start] == 0:
        portal, pos = "", start + 1
    else:
        portal, pos = _cstring(data, start, stop, read)
        finish(pos + 4, stop)
    limit: int = _INT32.unpack_from(data, pos)[0]
    return portal, (limit if limit > 0 else 0)


def function_call(data: bytes, start: int, stop: int) -> tuple[int, tuple[int, ...], list[bytes | None], int]:
    """Return the function's oid, argument formats, arguments and result format of FunctionCall."""
    try:
        oid = _UINT32.unpack_from(data, start)[0]
        formats, pos = _formats(data, start + 4, stop)
        count = _UINT16.unpack_from(data, pos)[0]
        pos += 2
        if len(formats) > 1 and len(formats) != count:
            raise RemoteProtocolError(
                f"function call message contains {len(formats)} argument formats but {count} arguments"
            )
        if count > MOST_ARGUMENTS:  # no function has so many: whoever calls it says so
            return oid, formats, [None] * count, 0
        args: list[bytes | None] = []
        for _ in range(count):
            length = _INT32.unpack_from(data, pos)[0]
            pos += 4
            if length < -1:
                raise RemoteProtocolError(f"invalid argument size {length} in function call message")
            args.append(data[pos : pos + length] if length >= 0 else None)
            pos += max(length, 0)
            if pos > stop:
                raise RemoteProtocolError(_NO_DATA_LEFT)
        result_format = _UINT16.unpack_from(data, pos)[0]
        finish(pos + 2, stop)
    except struct.error:
        raise RemoteProtocolError(_NO_DATA_LEFT) from None
    return oid, formats, args, result_format


def named(data: bytes, start: int, stop: int, message: str, read: Read = utf8) -> tuple[int, str]:
    """Return subtype (ord of S or P) and name of Describe or Close; ``message`` names it in errors."""
    if start >= stop:
        raise RemoteProtocolError("no data left in message")
    subtype = data[start]
    if stop - start == 2 and data[start + 1] == 0:
        name = ""
    else:
        name, pos = _cstring(data, start + 1, stop, read)
        finish(pos, stop)
    if subtype != 80 and subtype != 83:
        raise RemoteProtocolError(f"invalid {message} message subtype {subtype}")
    return subtype, name


def nothing(data: bytes, start: int, stop: int) -> None:
    """Check the empty payload of Flush, Sync and CopyDone."""
    finish(start, stop)


def startup(payload: bytes) -> tuple[int, m.FrontendMessage]:
    """Return kind and value of a start-up packet (without its length word). Every error here is fatal."""
    code = _INT32.unpack_from(payload)[0]
    if code == m.CANCEL_REQUEST_CODE:
        if not 12 <= len(payload) <= 8 + MAX_CANCEL_KEY_BYTES:
            raise RemoteProtocolError("invalid length of startup packet", fatal=True)
        return m.CANCEL_REQUEST, m.CancelRequest(_INT32.unpack_from(payload, 4)[0], payload[8:])
    if code == m.SSL_REQUEST_CODE and len(payload) == 4:
        return m.SSL_REQUEST, m.SSLRequest()
    if code == m.GSSENC_REQUEST_CODE and len(payload) == 4:
        return m.GSSENC_REQUEST, m.GSSENCRequest()
    major, minor = code >> 16 & 0xFFFF, code & 0xFFFF
    if major != 3:
        raise RemoteProtocolError(
            f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.2",
            sqlstate="0A000",
            fatal=True,
        )
    return m.STARTUP_MESSAGE, m.StartupMessage(_startup_parameters(payload), major, minor)


def _startup_parameters(payload: bytes) -> dict[str, str]:
    """Return the name/value pairs; an empty name ends them and must be the last byte."""
    parameters: dict[str, str] = {}
    pos, stop = 4, len(payload)
    try:
        while pos < stop and payload[pos] != 0:
            name, pos = _cstring(payload, pos, stop)
            value, pos = _cstring(payload, pos, stop)
            parameters[name] = value
    except RemoteProtocolError as error:
        if error.sqlstate != "08P01":
            error.fatal = True
            raise
        pos = stop
    if pos != stop - 1:
        raise RemoteProtocolError(
            "invalid startup packet layout: expected terminator as last byte", fatal=True
        )
    return parameters


def frontend(kind: int, data: bytes, start: int, stop: int, read: Read = utf8) -> m.FrontendMessage:
    """Return the message of type ``kind`` (a byte; start-up packets have their own function)."""
    match chr(kind):
        case "Q":
            return m.Query(query(data, start, stop, read))
        case "P":
            return m.Parse(*parse(data, start, stop, read))
        case "B":
            portal, statement, param_formats, params, result_formats = bind(data, start, stop, read)
            return m.Bind(portal, statement, param_formats, tuple(params), result_formats)
        case "D":
            subtype, name = named(data, start, stop, "DESCRIBE", read)
            return m.Describe("S" if subtype == 83 else "P", name)
        case "C":
            subtype, name = named(data, start, stop, "CLOSE", read)
            return m.Close("S" if subtype == 83 else "P", name)
        case "E":
            return m.Execute(*execute(data, start, stop, read))
        case "F":
            return m.FunctionCall(data[start:stop])
        case "p":
            return m.PasswordMessage(data[start:stop])
        case "d":
            return m.CopyData(data[start:stop])
        case "f":
            return m.CopyFail(query(data, start, stop, read))
        case "X":
            return m.Terminate()
        case "H":
            nothing(data, start, stop)
            return m.Flush()
        case "S":
            nothing(data, start, stop)
            return m.Sync()
        case "c":
            nothing(data, start, stop)
            return m.CopyDone()
        case _:
            raise RemoteProtocolError(f"invalid frontend message type {kind}", fatal=True)


# ---------------------------------------------------------------------------- backend messages (client side)


def _authentication(data: bytes) -> m.BackendMessage:
    code = _INT32.unpack_from(data)[0]
    match code:
        case 0:
            return m.AuthenticationOk()
        case 10:
            return m.AuthenticationSASL(tuple(name.decode() for name in data[4:].split(b"\0") if name))
        case 11:
            return m.AuthenticationSASLContinue(data[4:])
        case 12:
            return m.AuthenticationSASLFinal(data[4:])
        case _:
            raise RemoteProtocolError(f"unknown authentication request {code}", fatal=True)


def _strings(data: bytes, pos: int, count: int) -> tuple[str, ...]:
    found = []
    for _ in range(count):
        text, pos = _cstring(data, pos, len(data))
        found.append(text)
    finish(pos, len(data))
    return tuple(found)


def _function_call_response(data: bytes) -> m.FunctionCallResponse:
    length = _INT32.unpack_from(data)[0]
    return m.FunctionCallResponse(None if length < 0 else data[4 : 4 + length])


def _row_description(data: bytes) -> m.RowDescription:
    fields = []
    pos = 2
    for _ in range(_UINT16.unpack_from(data)[0]):
        name, pos = _cstring(data, pos, len(data))
        table_oid, attnum, type_oid, type_size, typmod, code = _FIELD.unpack_from(data, pos)
        pos += _FIELD.size
        fields.append(
            FieldDescription(
                name=name,
                type_oid=type_oid,
                type_size=type_size,
                typmod=typmod,
                table_oid=table_oid,
                attnum=attnum,
                format=code,
            )
        )
    finish(pos, len(data))
    return m.RowDescription(tuple(fields))


def _data_row(data: bytes) -> m.DataRow:
    values: list[bytes | None] = []
    pos = 2
    for _ in range(_UINT16.unpack_from(data)[0]):
        length = _INT32.unpack_from(data, pos)[0]
        pos += 4
        if length < 0:
            values.append(None)
        else:
            values.append(data[pos : pos + length])
            pos += length
    finish(pos, len(data))
    return m.DataRow(tuple(values))


def report(data: bytes) -> ErrorReport:
    """Return the report of ErrorResponse or NoticeResponse; fields it has no name for are dropped."""
    found: dict[str, str] = {}
    pos = 0
    while data[pos] != 0:
        code = chr(data[pos])
        found[code], pos = _cstring(data, pos + 1, len(data))

    def number(code: str) -> int | None:
        return int(found[code]) if code in found else None

    return ErrorReport(
        severity=found.get("V", found.get("S", "")),
        sqlstate=found.get("C", ""),
        message=found.get("M", ""),
        detail=found.get("D"),
        hint=found.get("H"),
        position=number("P"),
        internal_position=number("p"),
        internal_query=found.get("q"),
        where=found.get("W"),
        schema=found.get("s"),
        table=found.get("t"),
        column=found.get("c"),
        datatype=found.get("d"),
        constraint=found.get("n"),
    )


def _copy_formats(data: bytes) -> tuple[int, tuple[int, ...]]:
    formats, pos = _formats(data, 1, len(data))
    finish(pos, len(data))
    return data[0], formats


def _pid_key(data: bytes) -> m.BackendKeyData:
    return m.BackendKeyData(_INT32.unpack_from(data)[0], data[4:])


def _negotiate(data: bytes) -> m.NegotiateProtocolVersion:
    version, count = struct.unpack_from(">ii", data)
    return m.NegotiateProtocolVersion(version, _strings(data, 8, count))


def _parameter_description(data: bytes) -> m.ParameterDescription:
    count = _UINT16.unpack_from(data)[0]
    return m.ParameterDescription(struct.unpack(f">{count}I", data[2:]))


_BACKEND: Final[dict[str, Callable[[bytes], m.BackendMessage]]] = {
    "R": _authentication,
    "K": _pid_key,
    "v": _negotiate,
    "S": lambda data: m.ParameterStatus(*_strings(data, 0, 2)),
    "Z": lambda data: m.ReadyForQuery(cast(TransactionStatus, data.decode())),
    "1": lambda data: m.ParseComplete(),
    "2": lambda data: m.BindComplete(),
    "3": lambda data: m.CloseComplete(),
    "t": _parameter_description,
    "T": _row_description,
    "n": lambda data: m.NoData(),
    "V": _function_call_response,
    "D": _data_row,
    "C": lambda data: m.CommandComplete(*_strings(data, 0, 1)),
    "I": lambda data: m.EmptyQueryResponse(),
    "s": lambda data: m.PortalSuspended(),
    "E": lambda data: m.ErrorResponse(report(data)),
    "N": lambda data: m.NoticeResponse(report(data)),
    "A": lambda data: m.NotificationResponse(_INT32.unpack_from(data)[0], *_strings(data, 4, 2)),
    "G": lambda data: m.CopyInResponse(*_copy_formats(data)),
    "H": lambda data: m.CopyOutResponse(*_copy_formats(data)),
    "d": lambda data: m.CopyData(data),
    "c": lambda data: m.CopyDone(),
}

BACKEND_KINDS: Final = frozenset(map(ord, _BACKEND))


def backend(kind: int, data: bytes) -> m.BackendMessage:
    """Return the backend message of type ``kind`` with payload ``data``."""
    decoder = _BACKEND.get(chr(kind))
    if decoder is None:
        raise RemoteProtocolError(f"invalid backend message type {kind}", fatal=True)
    try:
        return decoder(data)
    except (struct.error, IndexError, ValueError):
        raise RemoteProtocolError(_NO_DATA_LEFT, fatal=True) from None
