"""Messages into bytes: the backend's and, for the client side, the frontend's.

Constant replies are encoded once, here. Lists of fields are encoded once per tuple object
(``row_description``), because a prepared statement describes itself with the same tuple every time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, singledispatch
from struct import Struct, pack
from typing import Final, TypeAlias

from pgwire import messages as m
from pgwire.backend import FieldDescription, Fields, TransactionStatus
from pgwire.codecs.text.encodings import UTF8
from pgwire.errors import ErrorReport

_HEADER = Struct(">cI")
_FIELD = Struct(">IhIhih")


def frame(kind: bytes, payload: bytes | bytearray | memoryview = b"") -> bytes:
    """Return one message: type byte, length word, payload."""
    return _HEADER.pack(kind, len(payload) + 4) + payload


Write: TypeAlias = Callable[[str], bytes]
"""From a text to its bytes in the client's encoding. Raises DataError 22P05 for a character that it lacks."""


def cstring(text: str, write: Write = UTF8.encode) -> bytes:
    """Return NUL-terminated text. A NUL inside, which the protocol cannot carry, is dropped."""
    if not text:  # as most names of portals are
        return b"\0"
    data = write(text)
    return (data.replace(b"\0", b"") if 0 in data else data) + b"\0"


PARSE_COMPLETE: Final = frame(b"1")
BIND_COMPLETE: Final = frame(b"2")
CLOSE_COMPLETE: Final = frame(b"3")
NO_DATA: Final = frame(b"n")
PORTAL_SUSPENDED: Final = frame(b"s")
EMPTY_QUERY: Final = frame(b"I")
COPY_DONE: Final = frame(b"c")
AUTHENTICATION_OK: Final = frame(b"R", pack(">i", 0))
READY_FOR_QUERY: Final[dict[TransactionStatus, bytes]] = {
    "I": frame(b"Z", b"I"),
    "T": frame(b"Z", b"T"),
    "E": frame(b"Z", b"E"),
}
ENCRYPTION_ACCEPTED: Final = b"S"
ENCRYPTION_REFUSED: Final = b"N"


def int16_list(values: Sequence[int]) -> bytes:
    """Return a count and that many 16-bit integers."""
    return pack(f">H{len(values)}h", len(values), *values)


def row_description(fields: Sequence[FieldDescription], write: Write = UTF8.encode) -> bytes:
    """Encode RowDescription."""
    parts = [pack(">H", len(fields))]
    for field in fields:
        parts.append(cstring(field.name, write))
        parts.append(
            _FIELD.pack(
                field.table_oid, field.attnum, field.type_oid, field.type_size, field.typmod, field.format
            )
        )
    return frame(b"T", b"".join(parts))


def cached_row_description(fields: Sequence[FieldDescription]) -> bytes:
    """Encode RowDescription in UTF-8, once for columns that keep it (``Fields``): it goes with them."""
    if type(fields) is not Fields:
        return row_description(fields)
    data = fields.encoded
    if data is None:
        data = fields.encoded = row_description(fields)
    return data


def parameter_description(param_oids: Sequence[int]) -> bytes:
    """Encode ParameterDescription."""
    return frame(b"t", pack(f">H{len(param_oids)}I", len(param_oids), *param_oids))


def function_call_response(value: bytes | memoryview | None) -> bytes:
    """Encode FunctionCallResponse."""
    return frame(b"V", pack(">i", -1) if value is None else pack(">i", len(value)) + value)


@lru_cache(maxsize=1024)
def command_complete(tag: str) -> bytes:
    """Encode CommandComplete."""
    return frame(b"C", cstring(tag))


def parameter_status(name: str, value: str, write: Write = UTF8.encode) -> bytes:
    """Encode ParameterStatus."""
    text = _name(name) + cstring(value, write)
    return _HEADER.pack(b"S", len(text) + 4) + text


@lru_cache(maxsize=256)
def _name(name: str) -> bytes:
    """As ``cstring``, for one of few names that are sent again and again."""
    return cstring(name)


def notification(pid: int, channel: str, payload: str, write: Write = UTF8.encode) -> bytes:
    """Encode NotificationResponse."""
    return frame(b"A", pack(">i", pid) + cstring(channel, write) + cstring(payload, write))


# Wire order of the optional fields, as PostgreSQL sends them (manual 55.8).
_REPORT_FIELDS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"D", "detail"),
    (b"H", "hint"),
    (b"P", "position"),
    (b"p", "internal_position"),
    (b"q", "internal_query"),
    (b"W", "where"),
    (b"s", "schema"),
    (b"t", "table"),
    (b"c", "column"),
    (b"d", "datatype"),
    (b"n", "constraint"),
    (b"R", "routine"),
)


def report_fields(report: ErrorReport, write: Write = UTF8.encode) -> bytes:
    """Encode the body that ErrorResponse and NoticeResponse share."""
    severity, message = cstring(report.severity), cstring(report.message, write)
    parts = [b"S", severity, b"V", severity, b"C", cstring(report.sqlstate), b"M", message]
    for code, name in _REPORT_FIELDS:
        value = getattr(report, name)
        if value is not None:
            parts.append(code)
            parts.append(cstring(str(value), write))
    parts.append(b"\0")
    return b"".join(parts)


def error_response(report: ErrorReport, write: Write = UTF8.encode) -> bytes:
    """Encode ErrorResponse."""
    return frame(b"E", report_fields(report, write))


def notice_response(report: ErrorReport, write: Write = UTF8.encode) -> bytes:
    """Encode NoticeResponse."""
    return frame(b"N", report_fields(report, write))


def copy_response(kind: bytes, overall: int, column_formats: Sequence[int]) -> bytes:
    """Encode CopyInResponse (kind G) or CopyOutResponse (H)."""
    return frame(kind, pack(">b", overall) + int16_list(column_formats))


def copy_data(data: bytes | bytearray | memoryview) -> bytes:
    """Encode CopyData."""
    return frame(b"d", data)


def values(items: Sequence[bytes | None]) -> bytes:
    """Return a count and that many length-prefixed values; None is length -1."""
    parts = [pack(">H", len(items))]
    for item in items:
        if item is None:
            parts.append(b"\xff\xff\xff\xff")
        else:
            parts.append(pack(">i", len(item)))
            parts.append(item)
    return b"".join(parts)


def data_row(items: Sequence[bytes | None]) -> bytes:
    """Encode one DataRow (tests and small results; ``pgwire.codecs.rows`` encodes many)."""
    return frame(b"D", values(items))


@singledispatch
def encode_backend(message: m.BackendMessage) -> bytes:
    """Return the bytes of any backend message."""
    raise TypeError(f"{type(message).__name__} is not a backend message")


@singledispatch
def encode_frontend(message: m.FrontendMessage) -> bytes:
    """Return the bytes of any frontend message."""
    raise TypeError(f"{type(message).__name__} is not a frontend message")


_CONSTANT: Final[tuple[tuple[type, bytes], ...]] = (
    (m.AuthenticationOk, AUTHENTICATION_OK),
    (m.ParseComplete, PARSE_COMPLETE),
    (m.BindComplete, BIND_COMPLETE),
    (m.CloseComplete, CLOSE_COMPLETE),
    (m.NoData, NO_DATA),
    (m.PortalSuspended, PORTAL_SUSPENDED),
    (m.EmptyQueryResponse, EMPTY_QUERY),
    (m.CopyDone, COPY_DONE),
)
encode_backend.register(m.FunctionCallResponse, lambda message: function_call_response(message.value))
for _type, _bytes in _CONSTANT:
    encode_backend.register(_type)(lambda message, data=_bytes: data)

encode_backend.register(
    m.EncryptionReply, lambda message: ENCRYPTION_ACCEPTED if message.accepted else ENCRYPTION_REFUSED
)
encode_backend.register(
    m.AuthenticationSASL,
    lambda message: frame(b"R", pack(">i", 10) + b"".join(map(cstring, message.mechanisms)) + b"\0"),
)
encode_backend.register(
    m.AuthenticationSASLContinue, lambda message: frame(b"R", pack(">i", 11) + message.data)
)
encode_backend.register(m.AuthenticationSASLFinal, lambda message: frame(b"R", pack(">i", 12) + message.data))
encode_backend.register(m.BackendKeyData, lambda message: frame(b"K", pack(">i", message.pid) + message.key))
encode_backend.register(
    m.NegotiateProtocolVersion,
    lambda message: frame(
        b"v", pack(">ii", message.version, len(message.options)) + b"".join(map(cstring, message.options))
    ),
)
encode_backend.register(m.ParameterStatus, lambda message: parameter_status(message.name, message.value))
encode_backend.register(m.ReadyForQuery, lambda message: READY_FOR_QUERY[message.status])
encode_backend.register(m.ParameterDescription, lambda message: parameter_description(message.param_oids))
encode_backend.register(m.RowDescription, lambda message: row_description(message.fields))
encode_backend.register(m.DataRow, lambda message: data_row(message.values))
encode_backend.register(m.CommandComplete, lambda message: command_complete(message.tag))
encode_backend.register(m.ErrorResponse, lambda message: error_response(message.report))
encode_backend.register(m.NoticeResponse, lambda message: notice_response(message.report))
encode_backend.register(
    m.NotificationResponse,
    lambda message: notification(message.pid, message.channel, message.payload),
)
encode_backend.register(
    m.CopyInResponse, lambda message: copy_response(b"G", message.format, message.column_formats)
)
encode_backend.register(
    m.CopyOutResponse, lambda message: copy_response(b"H", message.format, message.column_formats)
)
encode_backend.register(m.CopyData, lambda message: copy_data(message.data))


def _startup_packet(payload: bytes) -> bytes:
    return pack(">i", len(payload) + 4) + payload


def _startup_parameters(parameters: Mapping[str, str]) -> bytes:
    return b"".join(cstring(key) + cstring(value) for key, value in parameters.items()) + b"\0"


encode_frontend.register(m.SSLRequest, lambda message: _startup_packet(pack(">i", m.SSL_REQUEST_CODE)))
encode_frontend.register(m.GSSENCRequest, lambda message: _startup_packet(pack(">i", m.GSSENC_REQUEST_CODE)))
encode_frontend.register(
    m.CancelRequest,
    lambda message: _startup_packet(pack(">ii", m.CANCEL_REQUEST_CODE, message.pid) + message.key),
)
encode_frontend.register(
    m.StartupMessage,
    lambda message: _startup_packet(
        pack(">HH", message.major, message.minor) + _startup_parameters(message.parameters)
    ),
)
encode_frontend.register(m.PasswordMessage, lambda message: frame(b"p", message.data))
encode_frontend.register(m.Query, lambda message: frame(b"Q", cstring(message.sql)))
encode_frontend.register(
    m.Parse,
    lambda message: frame(
        b"P",
        cstring(message.statement)
        + cstring(message.sql)
        + pack(f">H{len(message.param_oids)}I", len(message.param_oids), *message.param_oids),
    ),
)
encode_frontend.register(
    m.Bind,
    lambda message: frame(
        b"B",
        cstring(message.portal)
        + cstring(message.statement)
        + int16_list(message.param_formats)
        + values(message.params)
        + int16_list(message.result_formats),
    ),
)
encode_frontend.register(
    m.Describe, lambda message: frame(b"D", message.kind.encode() + cstring(message.name))
)
encode_frontend.register(
    m.Execute, lambda message: frame(b"E", cstring(message.portal) + pack(">i", message.max_rows))
)
encode_frontend.register(m.Close, lambda message: frame(b"C", message.kind.encode() + cstring(message.name)))
encode_frontend.register(m.Flush, lambda message: frame(b"H"))
encode_frontend.register(m.Sync, lambda message: frame(b"S"))
encode_frontend.register(m.FunctionCall, lambda message: frame(b"F", message.data))
encode_frontend.register(m.CopyData, lambda message: copy_data(message.data))
encode_frontend.register(m.CopyDone, lambda message: COPY_DONE)
encode_frontend.register(m.CopyFail, lambda message: frame(b"f", cstring(message.message)))
encode_frontend.register(m.Terminate, lambda message: frame(b"X"))
