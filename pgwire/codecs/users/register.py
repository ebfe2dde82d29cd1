"""Codecs of users' types: what the table of ``registry`` gets when a database has enums, ranges, composite
types and domains.

Called when a catalog is read or changes; the same again does no harm. Labels, attributes and what a type is
called differ between databases, so they are looked up by the settings a codec is bound to
(``pgwire.codecs.users.types``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from pgwire.codecs import system, text
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import (
    CODECS,
    WITH_ROWS,
    Codec,
    Parse,
    Print,
    Recv,
    Send,
    add_range_and_multirange,
    array_codec,
    binary_encoder,
    binary_input,
    from_client,
    text_decoder,
    text_printer,
    to_client,
)
from pgwire.codecs.settings import CodecSettings
from pgwire.codecs.typmod import apply_typmod
from pgwire.codecs.users import composite, composite_keys, ranges
from pgwire.codecs.users.range_elements import SUBTYPES
from pgwire.codecs.users.types import STORED, enum_parser, enum_printer, row_shape
from pgwire.codecs.users.types import forget as forget_labels

T = TypeVar("T")


def register_enum(oid: int, array_oid: int) -> None:
    """Give an enum and the array type over it their codecs (the same again where they have them)."""

    def recv(settings: CodecSettings) -> Recv:
        parse = enum_parser(oid, settings)
        return from_client(lambda data: parse(text.decode(data)), settings)

    def send(settings: CodecSettings) -> Send:
        show = enum_printer(oid, settings)
        return to_client(lambda value: text.send_text(show(value)), settings)

    CODECS[oid] = Codec(
        oid=oid, name="enum", size=4, parse=functools.partial(enum_parser, oid),
        show=functools.partial(enum_printer, oid), recv=recv, send=send, ascii=False,
    )  # fmt: skip
    CODECS[array_oid] = array_codec(array_oid, CODECS[oid])
    composite_keys.know_enum(oid, array_oid)


def order_of(subtype: int) -> Callable[[Any], bytes] | None:
    """Return what gives the bytes by which a range orders elements that it keeps beside them, None for types
    with keys of their own.
    """
    return None if subtype in SUBTYPES else composite_keys.key_of(subtype)


def register_range(type_: ranges.RangeType, array_oid: int, multirange_array_oid: int) -> None:
    """Give a user's range type, its multirange type and the array types over them their codecs."""
    ranges.RANGES[type_.oid] = ranges.MULTIRANGES[type_.multirange] = type_
    add_range_and_multirange(type_)
    if type_.subtype in WITH_ROWS:
        WITH_ROWS.update((type_.oid, type_.multirange, array_oid, multirange_array_oid))
    for array_type, element in ((array_oid, type_.oid), (multirange_array_oid, type_.multirange)):
        CODECS[array_type] = array_codec(array_type, CODECS[element])
        composite_keys.know_array(array_type, element)


def register_row(oid: int, array_oid: int) -> None:
    """Give a composite type and the array type over it their codecs (the same again where they have them)."""

    def parser(settings: CodecSettings) -> Parse:
        if settings.types is STORED:
            return bytes.fromhex
        shape = row_shape(oid, settings)
        readers = [_once(text_decoder, at.plain, settings, at.typmod) for at in shape.attributes]
        demands = _demands(shape, settings)

        def parse(value: str) -> bytes:
            fields = composite.parse_fields(value, len(readers))
            return composite.pack(
                [None if item is None else read()(item) for item, read in zip(fields, readers, strict=True)],
                shape,
            )

        def parse_demanding(value: str) -> bytes:
            fields = composite.parse_fields(value, len(readers))
            values: list[Any] = []
            for item, read, demand in zip(fields, readers, demands, strict=True):
                values.append(None if item is None else read()(item))
                if demand is not None:
                    demand(values[-1])  # of NULL, too
            return composite.pack(values, shape)

        return parse_demanding if any(demands) else parse

    def printer(settings: CodecSettings) -> Print:
        if settings.types is STORED:
            return bytes.hex
        shape = row_shape(oid, settings)
        printers = [_once(text_printer, attribute.oid, settings) for attribute in shape.attributes]

        def show(value: bytes) -> str:
            fields = composite.values_of(value, shape)
            shown = [
                "" if item is None else system.quote_field(print_()(item))
                for item, print_ in zip(fields, printers, strict=True)
            ]
            return system.shown_record(shown)

        return show

    def recv(settings: CodecSettings) -> Recv:
        shape = row_shape(oid, settings)
        demands = _demands(shape, settings)

        def read(number: int, data: bytes | None) -> Any:
            attribute, demand = shape.attributes[number], demands[number]
            value = None if data is None else binary_input(attribute.oid, data, settings)
            value = apply_typmod(attribute.plain, value, attribute.typmod)
            if demand is not None:
                demand(value)
            return value

        return lambda data: composite.receive(data, shape, read, _type_name)

    def send(settings: CodecSettings) -> Send:
        shape = row_shape(oid, settings)
        types = tuple(attribute.oid for attribute in shape.attributes)
        senders = [_once(binary_encoder, type_oid, settings) for type_oid in types]

        def write(value: bytes) -> bytes:
            fields = composite.values_of(value, shape)
            return system.send_record(
                types,
                [None if item is None else to()(item) for item, to in zip(fields, senders, strict=True)],
            )

        return write

    composite_keys.know_row(oid, array_oid)
    WITH_ROWS.update((oid, array_oid))
    CODECS[oid] = Codec(
        oid=oid, name="record", size=-1, parse=parser, show=printer, recv=recv, send=send, ascii=False
    )
    CODECS[array_oid] = array_codec(array_oid, CODECS[oid])


def _once(make: Callable[..., T], *args: Any) -> Callable[[], T]:
    """Return what calls ``make(*args)`` when it is first called, and gives the same again from then on.

    The codec of an attribute is made when a value has that attribute: a type over types that each have two
    attributes of the one before has 2^n codecs below it, and its values, where they are null, none.
    """
    return functools.lru_cache(1)(functools.partial(make, *args))


def _demands(shape: composite.RowShape, settings: CodecSettings) -> list[Callable[[Any], None] | None]:
    """Return what raises what the domain of each attribute has against a value; None for attributes of other types.

    Raises DataError 0A000 where the settings do not tell.
    """
    found: list[Callable[[Any], None] | None] = []
    for attribute in shape.attributes:
        if attribute.oid == attribute.plain:
            found.append(None)
        elif settings.demand is not None:
            found.append(functools.partial(settings.demand, attribute.oid))
        else:
            raise DataError(
                "0A000",
                f'input of a composite value whose attribute "{attribute.name}" is of a domain is not supported here',
            )
    return found


def _type_name(oid: int) -> str:
    return CODECS[oid].name if oid in CODECS else "???"


def register_domain(oid: int, array_oid: int, plain: int) -> None:
    """Give a domain the codec of the type under it, ``plain``, and the array type over it (0: there is none) one."""
    CODECS[oid] = replace(CODECS[plain], oid=oid)
    if array_oid:
        CODECS[array_oid] = array_codec(array_oid, CODECS[oid], plain)
    composite_keys.know_domain(oid, array_oid, plain)
    if plain in WITH_ROWS:
        WITH_ROWS.update((oid, array_oid or oid))


def forget(oid: int) -> None:
    """Take back what was registered of a type, of whatever kind it is."""
    CODECS.pop(oid, None)
    WITH_ROWS.discard(oid)
    ranges.RANGES.pop(oid, None)
    ranges.MULTIRANGES.pop(oid, None)
    composite_keys.forget(oid)
    forget_labels(oid)
