"""Malformed binary forms: an error of the client's data, as PostgreSQL 15 has it or 22P03, never an internal one."""

from __future__ import annotations

import random

import pytest

from pgwire.codecs import domain
from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import CODECS, DEFAULT, binary_encoder, binary_input, binary_output, text_input

CLASSES = ("08", "22", "42", "54", "0A")
ARRAY = "00000001 00000000 {oid} 00000001 00000001"

CASES = [
    ("int4multirange", "ffffffff", "22P03"),
    ("int4multirange", "7d68b9aa", "22P03"),
    ("int4multirange", "00000001 00000002 02", "08P01"),
    ("int4range", "02 00000004 00000001", "08P01"),
    ("int4range", "02 00000002 0001 00000004 00000001", "08P01"),
    ("tsvector", "00000001 6100 0002 0002 0001", "22P03"),
    ("tsvector", "00000001 6100 ff01", "22P03"),
    ("tsvector", "00000001 00 0000", "22P03"),
    ("tsvector", "00000001 61", "08P01"),
    ("tsquery", "00000001 03", "22P03"),
    ("tsquery", "00000001 02 01", "22P03"),
    ("jsonb", "", "08P01"),
    ("jsonb", "02 7b7d", "22P03"),
    ("jsonpath", "", "08P01"),
    ("jsonpath", "02 24", "22P03"),
    ("money", "00", "08P01"),
    ("money", "00" * 9, "22P03"),
    ("macaddr", "00" * 5, "08P01"),
    ("macaddr8", "00" * 7, "08P01"),
    ("pg_lsn", "00" * 7, "08P01"),
    ("inet", "0220", "08P01"),
    ("inet", "02200004 010203", "08P01"),
    ("inet", "02200005 0102030405", "22P03"),
    ("bit", "7fffffff 00", "22P03"),
    ("int4[]", ARRAY.format(oid="00000017") + "00000005 0000000001", "22P03"),
    ("int4[]", ARRAY.format(oid="00000017") + "00000002 0001", "08P01"),
    ("aclitem", "00000001", "42883"),
]  # fmt: skip

OIDS = {codec.name: oid for oid, codec in CODECS.items()} | {"int4[]": 1007}


@pytest.mark.parametrize(("name", "data", "sqlstate"), CASES)
def test_what_is_malformed_is_the_clients_error(name: str, data: str, sqlstate: str) -> None:
    with pytest.raises(DataError) as caught:
        binary_input(OIDS[name], bytes.fromhex(data))
    assert caught.value.sqlstate == sqlstate


def test_aclitem_has_no_binary_form() -> None:
    with pytest.raises(DataError, match="no binary output function available for type aclitem"):
        binary_encoder(domain.ACLITEM, DEFAULT)


VALUES = {
    "int4multirange": "{[1,5),[7,9)}", "numrange": "[1.5,2.5]", "tsvector": "'a':1A 'b':2", "tsquery": "a & b:*",
    "jsonb": '{"a":1}', "inet": "1.2.3.4", "numeric": "12345.678", "int4[]": "{1,2,NULL}", "macaddr8": "08:00:2b:01:02:03:04:05",
    "interval": "1 day", "timestamp with time zone": "2020-01-01", "bit varying": "1011", "path": "((1,2),(3,4))", "uuid": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "pg_snapshot": "1:5:2", "time with time zone": "12:00+01", "polygon": "((1,2),(3,4))", "tid": "(0,1)",
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_cut_and_garbled_forms_are_values_or_the_clients_errors(name: str) -> None:
    oid = OIDS[name]
    good = binary_output(oid, text_input(oid, VALUES[name]))
    draw = random.Random(name)
    garbled = [good[:size] for size in range(len(good))] + [good + b"\0"]
    for _ in range(150):
        data = bytearray(good)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.choice((0, 1, 2, 127, 128, 255, draw.randrange(256)))
        garbled.append(bytes(data))
    assert {sqlstate for data in garbled if (sqlstate := _refusal(oid, data))[:2] not in CLASSES} == {""}


def _refusal(oid: int, data: bytes) -> str:
    """Return the SQLSTATE of the error that a binary form raises; "" for a value."""
    try:
        binary_input(oid, data)
    except DataError as error:
        return error.sqlstate
    return ""
