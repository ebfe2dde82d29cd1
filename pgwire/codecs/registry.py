"""All codecs by type oid: the one entrance for values in and out.

    text_input(oid, text, typmod, settings)  -> value       text_output(oid, value, settings)   -> str
    binary_input(oid, data, settings)        -> value       binary_output(oid, value, settings) -> bytes

``text_decoder``, ``binary_decoder``, ``text_printer``, ``text_encoder`` and ``binary_encoder`` return the bare
function of a type, bound to settings, for loops. NULL is never passed to any of them. A type without a codec is
0A000.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pgwire.codecs import (
    array,
    bit,
    bytea,
    domain,
    geometric,
    json,
    macaddr,
    money,
    network,
    numeric,
    snapshot,
    system,
    text,
)
from pgwire.codecs import bool as bool_
from pgwire.codecs import float as float_
from pgwire.codecs import int as int_
from pgwire.codecs.errors import DataError
from pgwire.codecs.json import hstore, jsonpath
from pgwire.codecs.settings import DEFAULT, CodecSettings
from pgwire.codecs.text import citext, tsquery, tsvector, uuid
from pgwire.codecs.text.encodings import encoding
from pgwire.codecs.time import datetime, interval
from pgwire.codecs.time import printing as show
from pgwire.codecs.typmod import apply_typmod, interval_limits, typmod_function
from pgwire.codecs.users import ranges
from pgwire.codecs.users.types import NAMES, STORED, gone
from pgwire.oids import TYPE_NAME

__all__ = [
    "DEFAULT", "Codec", "CodecSettings", "binary_decoder", "binary_encoder", "binary_input", "binary_output",
    "codec", "has_codec", "has_rows", "kept_for_settings",
    "text_decoder", "text_encoder", "text_input", "text_output", "text_printer",
    "type_size",
]  # fmt: skip

Parse: TypeAlias = Callable[[str], Any]
Print: TypeAlias = Callable[[Any], str]
Recv: TypeAlias = Callable[[bytes], Any]
Send: TypeAlias = Callable[[Any], bytes]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The four conversions of a type, each made for given settings.

    Attributes:
        size: pg_type.typlen: bytes, -1 for variable length, -2 for cstring.
        plain: the text form never needs quoting in an array or record.
        ascii: the text form is ASCII (so that characters are bytes).
    """

    oid: int
    name: str
    size: int
    parse: Callable[[CodecSettings], Parse]
    show: Callable[[CodecSettings], Print]
    recv: Callable[[CodecSettings], Recv]
    send: Callable[[CodecSettings], Send]
    plain: bool = False
    ascii: bool = True


CODECS: dict[int, Codec] = {}
"""By type oid; users' types come and go (``pgwire.codecs.users.register``)."""
WITH_ROWS: set[int] = {domain.RECORD, 2287}
"""Types with composite types in their values, and record and record[], which may have them."""


def _always(function: Any) -> Callable[[CodecSettings], Any]:
    return lambda _: function


def _add(
    oid: int, name: str, size: int, parse: Parse, show_: Print, recv: Recv, send: Send, *,
    plain: bool = False, ascii: bool = True,
) -> None:  # fmt: skip
    """Add a type whose forms do not depend on settings."""
    CODECS[oid] = Codec(
        oid=oid, name=name, size=size, parse=_always(parse), show=_always(show_), recv=_always(recv),
        send=_always(send), plain=plain, ascii=ascii,
    )  # fmt: skip


def _add_text(oid: int, name: str, size: int, parse: Parse, show_: Print, recv: Recv, send: Send) -> None:
    """Add a type whose binary form is text, in the client's encoding (with a version byte before it, which is
    ASCII).
    """
    CODECS[oid] = Codec(
        oid=oid, name=name, size=size, parse=_always(parse), show=_always(show_),
        recv=lambda settings: from_client(recv, settings), send=lambda settings: to_client(send, settings),
        ascii=False,
    )  # fmt: skip


def from_client(recv: Recv, settings: CodecSettings) -> Recv:
    """Return ``recv``, which reads UTF-8, for what is in the client's encoding."""
    if settings.encoding == "UTF8":
        return recv
    read = encoding(settings.encoding).decode
    return lambda data: recv(read(bytes(data)).encode("utf-8"))


def to_client(send: Send, settings: CodecSettings) -> Send:
    """Return ``send``, which writes UTF-8, in the client's encoding."""
    if settings.encoding == "UTF8":
        return send
    write = encoding(settings.encoding).encode
    return lambda value: write(send(value).decode("utf-8"))


def _add_for(
    oid: int, name: str, size: int, parse: Callable[[str, CodecSettings], Any],
    printer: Callable[[CodecSettings], Print], recv: Recv, send: Send,
) -> None:  # fmt: skip
    """Add a type whose text form depends on settings."""
    CODECS[oid] = Codec(
        oid=oid, name=name, size=size, parse=lambda settings: lambda text: parse(text, settings),
        show=printer, recv=_always(recv), send=_always(send),
    )  # fmt: skip


def _add_scalars() -> None:
    _add(domain.BOOL, "boolean", 1, bool_.parse, bool_.show, bool_.recv, bool_.send, plain=True)
    _add(domain.INT2, "smallint", 2, int_.parse_int2, int_.show, int_.recv_int2, int_.send_int2, plain=True)
    _add(domain.INT4, "integer", 4, int_.parse_int4, int_.show, int_.recv_int4, int_.send_int4, plain=True)
    _add(domain.INT8, "bigint", 8, int_.parse_int8, int_.show, int_.recv_int8, int_.send_int8, plain=True)
    _add(domain.OID, "oid", 4, int_.parse_oid, int_.show, int_.recv_oid, int_.send_oid, plain=True)
    _add(domain.XID, "xid", 4, int_.parse_xid, int_.show, int_.recv_oid, int_.send_oid, plain=True)
    _add(domain.CID, "cid", 4, int_.parse_xid, int_.show, int_.recv_oid, int_.send_oid, plain=True)
    _add(domain.XID8, "xid8", 8, int_.parse_xid8, int_.show_xid8, int_.recv_xid8, int_.send_xid8, plain=True)
    for oid, name in ((domain.TXID_SNAPSHOT, "txid_snapshot"), (domain.PG_SNAPSHOT, "pg_snapshot")):
        _add(oid, name, -1, snapshot.parse, snapshot.show, snapshot.recv, snapshot.send)
    _add(domain.TID, "tid", 6, system.parse_tid, system.show_tid, system.recv_tid, system.send_tid)
    for oid, name in domain.REG_TYPES.items():
        CODECS[oid] = Codec(
            oid=oid, name=name, size=4, parse=functools.partial(_reg_reader, oid, name), show=functools.partial(_reg_printer, oid),
            recv=_always(int_.recv_oid), send=_always(int_.send_oid), ascii=False,
        )  # fmt: skip
    _add(domain.NUMERIC, "numeric", -1, numeric.parse, numeric.show, numeric.recv, numeric.send, plain=True)
    _add_floats()
    _add(domain.UUID, "uuid", 16, uuid.parse, uuid.show, uuid.recv, uuid.send, plain=True)
    _add(domain.BIT, "bit", -1, bit.parse, bit.show, bit.recv, bit.send)
    _add(domain.VARBIT, "bit varying", -1, bit.parse, bit.show, bit.recv, bit.send)
    CODECS[domain.BYTEA] = Codec(
        oid=domain.BYTEA, name="bytea", size=-1, parse=_always(bytea.parse),
        show=lambda s: bytea.show_hex if s.bytea_output == "hex" else bytea.show_escape,
        recv=_always(bytea.copy), send=_always(bytea.copy),
    )  # fmt: skip
    _add(domain.VOID, "void", 4, system.parse_void, system.show_void, system.recv_void, system.send_void)


def _add_floats() -> None:
    def float8(settings: CodecSettings) -> Print:
        return float_.float8_printer(settings.extra_float_digits)

    def float4(settings: CodecSettings) -> Print:
        extra = settings.extra_float_digits
        if extra > 0:
            return float_.show_float4
        return lambda value: float_.show_digits(value, 6 + extra)

    for oid, name, size, parse, printer, recv, send in (
        (domain.FLOAT4, "real", 4, float_.parse_float4, float4, float_.recv_float4, float_.send_float4),
        (domain.FLOAT8, "double precision", 8, float_.parse_float8, float8, float_.recv_float8,
         float_.send_float8),
    ):  # fmt: skip
        CODECS[oid] = Codec(
            oid=oid, name=name, size=size, parse=_always(parse), show=printer, recv=_always(recv),
            send=_always(send), plain=True,
        )  # fmt: skip


def _reg_reader(oid: int, name: str, settings: CodecSettings) -> Parse:
    def parse(value: str) -> int:
        if value == "-":
            return 0
        if value.isdigit():
            return int_.parse_oid(value)
        found = NAMES.read(oid, value)
        if found is None:
            raise DataError("0A000", f"input of type {name} by name is not supported here")
        return found

    return parse


def _reg_printer(oid: int, settings: CodecSettings) -> Print:
    if settings.types is STORED:  # names may change
        return _show_number

    def show(value: int) -> str:
        found = NAMES.show(oid, value)
        return _show_number(value) if found is None else found

    return show


def _show_number(value: int) -> str:
    return str(value) if value else "-"


def _no_binary(way: str, name: str, settings: CodecSettings) -> Any:
    """Refuse the binary form of a type that has none: 42883."""
    raise DataError("42883", f"no binary {way} function available for type {name}")


def _only_shown(name: str, value: object) -> Any:
    """Refuse the input of a type that has none: 0A000."""
    raise DataError("0A000", f"cannot accept a value of type {name}")


def _add_texts() -> None:
    for oid, name, size in (
        (domain.TEXT, "text", -1), (domain.VARCHAR, "character varying", -1), (domain.BPCHAR, "character", -1),
        (domain.UNKNOWN, "unknown", -2), (domain.CSTRING, "cstring", -2),
        (domain.REFCURSOR, "refcursor", -1),
        (domain.PG_NODE_TREE, "pg_node_tree", -1),
        # columns of catalog relations: statistics, which are always NULL, and missing values, which are texts
        (2277, "anyarray", -1),
    ):  # fmt: skip
        _add_text(oid, name, size, text.parse_text, text.show_text, text.decode, text.send_text)
    for oid, name in ((3361, "pg_ndistinct"), (3402, "pg_dependencies"), (5017, "pg_mcv_list")):
        refuse = functools.partial(_only_shown, name)  # ANALYZE alone makes such values
        _add_text(oid, name, -1, refuse, text.show_text, refuse, text.send_text)
    CODECS[domain.ACLITEM] = Codec(
        oid=domain.ACLITEM, name="aclitem", size=12, parse=_always(text.parse_text), show=_always(text.show_text),
        recv=functools.partial(_no_binary, "input", "aclitem"), send=functools.partial(_no_binary, "output", "aclitem"), ascii=False,
    )  # fmt: skip
    _add_text(domain.CITEXT, "citext", -1, citext.parse, citext.unpack, citext.receive, citext.send)
    CODECS[domain.HSTORE] = Codec(
        oid=domain.HSTORE, name="hstore", size=-1, parse=_always(hstore.parse), show=_always(hstore.show),
        recv=_always(hstore.receive), send=_always(hstore.send), ascii=False,
    )  # fmt: skip
    _add(869, "inet", -1, network.parse_inet, network.show_inet, network.recv_inet, network.send_inet)
    _add(650, "cidr", -1, network.parse_cidr, network.show_cidr, network.recv_cidr, network.send_cidr)
    _add(829, "macaddr", 6, macaddr.parse, macaddr.show, macaddr.recv, macaddr.send)
    _add(774, "macaddr8", 8, macaddr.parse8, macaddr.show, macaddr.recv8, macaddr.send)
    _add(790, "money", 8, money.parse, money.show, money.recv, money.send)
    _add(3220, "pg_lsn", 8, network.parse_lsn, network.show_lsn, network.recv_lsn, network.send_lsn)
    _add_text(domain.NAME, "name", 64, text.parse_name, text.show_text, text.recv_name, text.send_text)
    _add(domain.CHAR, '"char"', 1, text.parse_char, text.show_text, text.recv_char, text.send_char)
    _add_text(domain.JSON, "json", -1, json.parse_json, text.show_text, json.recv_json, text.send_text)
    _add_text(domain.JSONB, "jsonb", -1, json.parse_jsonb, text.show_text, json.recv_jsonb, json.send_jsonb)
    _add_text(
        domain.JSONPATH, "jsonpath", -1, jsonpath.parse_text, text.show_text, jsonpath.recv, jsonpath.send
    )


def _add_times() -> None:
    _add_for(domain.DATE, "date", 4, datetime.parse_date, show.date_printer, datetime.recv_date,
             datetime.send_date)  # fmt: skip
    _add_for(domain.TIME, "time without time zone", 8, datetime.parse_time, _always(show.show_time),
             datetime.recv_time, datetime.send_time)  # fmt: skip
    _add_for(domain.TIMETZ, "time with time zone", 12, datetime.parse_timetz, _always(show.show_timetz),
             datetime.recv_timetz, datetime.send_timetz)  # fmt: skip
    _add_for(domain.TIMESTAMP, "timestamp without time zone", 8, datetime.parse_timestamp,
             show.timestamp_printer, datetime.recv_timestamp, datetime.send_timestamp)  # fmt: skip
    _add_for(domain.TIMESTAMPTZ, "timestamp with time zone", 8, datetime.parse_timestamptz,
             show.timestamptz_printer, datetime.recv_timestamp, datetime.send_timestamp)  # fmt: skip
    _add_for(domain.INTERVAL, "interval", 16, interval.parse, interval.printer, interval.recv,
             interval.send)  # fmt: skip


def _add_composites() -> None:
    for oid, name, element, recv, send in (
        (domain.INT2VECTOR, "int2vector", int_.parse_int2, int_.recv_int2, int_.send_int2),
        (domain.OIDVECTOR, "oidvector", int_.parse_oid, int_.recv_oid, int_.send_oid),
    ):
        inner = domain.INT2 if oid == domain.INT2VECTOR else domain.OID
        _add(
            oid, name, -1, system.vector_reader(element), system.show_vector,
            array.vector_receiver(inner, recv),
            array.sender(inner, send, leaf_is_tuple=False, lower_bound=0),
        )  # fmt: skip
    CODECS[domain.RECORD] = Codec(
        oid=domain.RECORD, name="record", size=-1, parse=_no_record, show=_record_printer,
        recv=_no_record, send=_record_sender, ascii=False,
    )  # fmt: skip


def _add_text_search() -> None:
    CODECS[domain.TSVECTOR] = Codec(
        oid=domain.TSVECTOR, name="tsvector", size=-1, parse=_always(tsvector.parse), show=_always(tsvector.show),
        recv=tsvector.receiver, send=tsvector.sender, ascii=False,
    )  # fmt: skip
    CODECS[domain.TSQUERY] = Codec(
        oid=domain.TSQUERY, name="tsquery", size=-1, parse=_always(tsquery.parse), show=_always(tsquery.show),
        recv=tsquery.receiver, send=tsquery.sender, ascii=False,
    )  # fmt: skip


def _add_geometric() -> None:
    for oid, name, size, parse, printer, recv in (
        (domain.POINT, "point", 16, geometric.parse_point, geometric.point_printer, geometric.receive_point),
        (domain.LSEG, "lseg", 32, geometric.parse_lseg, geometric.lseg_printer, geometric.receive_lseg),
        (domain.PATH, "path", -1, geometric.parse_path, geometric.path_printer, geometric.receive_path),
        (domain.BOX, "box", 32, geometric.parse_box, geometric.box_printer, geometric.receive_box),
        (domain.POLYGON, "polygon", -1, geometric.parse_polygon, geometric.polygon_printer, geometric.receive_polygon),
        (domain.LINE, "line", 24, geometric.parse_line, geometric.line_printer, geometric.receive_line),
        (domain.CIRCLE, "circle", 24, geometric.parse_circle, geometric.circle_printer, geometric.receive_circle),
    ):  # fmt: skip
        CODECS[oid] = Codec(
            oid=oid, name=name, size=size, parse=_always(parse), show=printer, recv=_always(recv),
            send=_always(bytea.copy),
        )  # fmt: skip


def _add_ranges() -> None:
    for type_ in ranges.RANGES.values():
        add_range_and_multirange(type_)


def add_range_and_multirange(type_: ranges.RangeType) -> None:
    """Add the codecs of a range type and of its multirange type."""
    _add_range(
        type_, type_.oid, type_.name, ranges.range_parser, ranges.range_printer, ranges.range_receiver,
        ranges.range_sender,
    )  # fmt: skip
    _add_range(
        type_, type_.multirange, type_.multirange_name, ranges.multirange_parser, ranges.multirange_printer,
        ranges.multirange_receiver, ranges.multirange_sender,
    )  # fmt: skip


def _add_range(
    type_: ranges.RangeType, oid: int, name: str,
    parser: Callable[[ranges.RangeType, Parse], Parse], printer: Callable[[Print], Print],
    receiver: Callable[[ranges.RangeType, Recv], Recv], sender: Callable[[Send], Send],
) -> None:  # fmt: skip
    element = CODECS[type_.subtype]
    CODECS[oid] = Codec(
        oid=oid, name=name, size=-1,
        parse=lambda s: parser(type_, _of_domain(type_, element.parse(s), s)),
        show=lambda s: printer(element.show(s)),
        recv=lambda s: receiver(type_, _of_domain(type_, element.recv(s), s)),
        send=lambda s: sender(element.send(s)),
        ascii=element.ascii,
    )  # fmt: skip


def _of_domain(
    type_: ranges.RangeType, read: Callable[[T], Any], settings: CodecSettings
) -> Callable[[T], Any]:
    """Return what reads an element of a range: one of a domain has to keep what that demands. Raises
    DataError 0A000 where the settings do not tell.
    """
    if not type_.declared or settings.types is STORED:
        return read
    demand, typmod, declared, subtype = settings.demand, type_.typmod, type_.declared, type_.subtype
    if demand is None:
        raise DataError(
            "0A000",
            f'input of a value of range type "{type_.name}", which is over a domain, is not supported here',
        )

    def checked(data: T) -> Any:
        value = apply_typmod(subtype, read(data), typmod)
        demand(declared, value)
        return value

    return checked


def _no_record(settings: CodecSettings) -> Callable[[Any], Any]:
    def refuse(value: Any) -> Any:
        raise DataError("0A000", "input of anonymous composite types is not implemented")

    return refuse


def _record_printer(settings: CodecSettings) -> Print:
    def show_record(value: Any) -> str:
        fields = [
            "" if item is None else system.quote_field(text_output(oid, item, settings))
            for oid, item in zip(system.record_types(value), value, strict=True)
        ]
        return system.shown_record(fields)

    return show_record


def _record_sender(settings: CodecSettings) -> Send:
    def send(value: Any) -> bytes:
        types = system.record_types(value)
        fields = [
            None if item is None else binary_output(oid, item, settings)
            for oid, item in zip(types, value, strict=True)
        ]
        return system.send_record(types, fields)

    return send


def array_codec(oid: int, element: Codec, plain_element: int = 0) -> Codec:
    """Return an array's codec; ``plain_element``: the type under the element, where that is a domain."""
    tuple_leaf = (plain_element or element.oid) in domain.TUPLE_TYPES
    delimiter = array.delimiter_of(plain_element or element.oid)

    def recv(settings: CodecSettings) -> Recv:
        inner = element.recv(settings)
        return lambda data: array.recv(data, element.oid, inner)

    return Codec(
        oid=oid, name=element.name + "[]", size=-1,
        parse=lambda s: functools.partial(array.parse, element=element.parse(s), delimiter=delimiter, nulls=s.array_nulls),
        show=lambda s: array.printer(
            element.show(s), leaf_is_tuple=tuple_leaf, plain=element.plain, delimiter=delimiter
        ),
        recv=recv,
        send=lambda s: array.sender(element.oid, element.send(s), leaf_is_tuple=tuple_leaf),
        ascii=element.ascii,
    )  # fmt: skip


# Domains of information_schema travel as their base types.
_DOMAINS = {13221: domain.INT4, 13224: domain.VARCHAR, 13226: domain.NAME, 13232: domain.TIMESTAMPTZ,
            13234: domain.VARCHAR}  # fmt: skip


def _fill() -> None:
    _add_scalars()
    _add_texts()
    _add_times()
    _add_composites()
    _add_ranges()
    _add_text_search()
    _add_geometric()
    for oid, element in domain.ARRAY_ELEMENT.items():
        CODECS[oid] = array_codec(oid, CODECS[element])
    for oid, base in _DOMAINS.items():
        CODECS[oid] = CODECS[base]
        CODECS[oid - 1] = array_codec(oid - 1, CODECS[base])


_fill()


# -- looking up ---------------------------------------------------------------------------------------------


def has_codec(type_oid: int) -> bool:
    """Whether values of the type can be read and printed."""
    return type_oid in CODECS


def codec(type_oid: int) -> Codec:
    """Return the codec of a type; 0A000 if it has none, 42704 for a user's type that is gone."""
    try:
        return CODECS[type_oid]
    except KeyError:
        if type_oid >= domain.FIRST_USER_OID:
            raise gone(type_oid) from None
        name = TYPE_NAME.get(type_oid, f"with oid {type_oid}")
        raise DataError("0A000", f"values of type {name} are not supported") from None


def type_size(type_oid: int) -> int:
    """Return RowDescription's type size: bytes, -1 variable, -2 cstring (and unknown)."""
    found = CODECS.get(type_oid)
    return found.size if found is not None else -1


def text_decoder(type_oid: int, settings: CodecSettings = DEFAULT, typmod: int = -1) -> Parse:
    """Return the function that reads the type's text, applying ``typmod`` as an assignment does."""
    if typmod >= 0 and type_oid == domain.INTERVAL:
        fields = interval_limits(typmod)[0]
        parse: Parse = functools.partial(interval.parse, settings=settings, fields=fields)
    else:
        parse = codec(type_oid).parse(settings)
    apply = typmod_function(type_oid, typmod)
    return parse if apply is None else lambda value: apply(parse(value))


def text_input(type_oid: int, text: str, typmod: int = -1, settings: CodecSettings = DEFAULT) -> Any:
    """Read a value from its text form and apply ``typmod``.

    Raises:
        DataError: 22P02 and kin as PostgreSQL words them; 0A000 for a type without codec.
    """
    return text_decoder(type_oid, settings, typmod)(text)


def has_rows(type_oid: int) -> bool:
    """Tell whether there may be composite types in values of a type."""
    return type_oid in WITH_ROWS


MANY_TYPES = 100


def kept_for_settings(maxsize: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Cache what is made for types (its first argument: one oid, or a tuple of them) and settings.

    But not where there are composite types among them, whose attributes change without the settings being
    others, nor of more than ``MANY_TYPES``, for which much may be made.
    """

    def decorate(make: Callable[..., T]) -> Callable[..., T]:
        kept = functools.lru_cache(maxsize)(make)

        @functools.wraps(make)
        def get(types: Any, *args: Any, **options: Any) -> T:
            fresh = (
                len(types) > MANY_TYPES or not WITH_ROWS.isdisjoint(types)
                if isinstance(types, tuple)
                else types in WITH_ROWS
            )
            return make(types, *args, **options) if fresh else kept(types, *args, **options)

        return get

    return decorate


@kept_for_settings(1024)
def text_printer(type_oid: int, settings: CodecSettings = DEFAULT) -> Print:
    """Return the function from value to text (str)."""
    return codec(type_oid).show(settings)


def text_output(type_oid: int, value: Any, settings: CodecSettings = DEFAULT) -> str:
    """Print a value."""
    return text_printer(type_oid, settings)(value)


@kept_for_settings(1024)
def text_encoder(type_oid: int, settings: CodecSettings = DEFAULT) -> Send:
    """Return the function from value to text in UTF-8."""
    printer = codec(type_oid).show(settings)
    return lambda value: printer(value).encode("utf-8")


def binary_decoder(type_oid: int, settings: CodecSettings = DEFAULT) -> Recv:
    """Return the function that reads the type's binary form."""
    return codec(type_oid).recv(settings)


def binary_input(type_oid: int, data: bytes, settings: CodecSettings = DEFAULT) -> Any:
    """Read a value from its binary form. Raises 22P03 and kin."""
    return codec(type_oid).recv(settings)(data)


@kept_for_settings(1024)
def binary_encoder(type_oid: int, settings: CodecSettings = DEFAULT) -> Send:
    """Return the function from value to binary form."""
    return codec(type_oid).send(settings)


def binary_output(type_oid: int, value: Any, settings: CodecSettings = DEFAULT) -> bytes:
    """Return a value's binary form."""
    return binary_encoder(type_oid, settings)(value)
