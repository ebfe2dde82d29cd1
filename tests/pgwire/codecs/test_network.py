"""inet, cidr and pg_lsn read and print as PostgreSQL's."""

from __future__ import annotations

import pytest

from pgwire.codecs.errors import DataError
from pgwire.codecs.registry import binary_input, binary_output, text_input, text_output

INET, CIDR, LSN, MAC, MAC8, MONEY = 869, 650, 3220, 829, 774, 790


@pytest.mark.parametrize(
    ("oid", "text", "printed", "binary"),
    [
        (INET, "127.0.0.1", "127.0.0.1", "02200004" + "7f000001"),
        (INET, "10.1.2.3/8", "10.1.2.3/8", "02080004" + "0a010203"),
        (INET, "10.1.2.3/32", "10.1.2.3", "02200004" + "0a010203"),
        (INET, "::1", "::1", "03800010" + "00" * 15 + "01"),
        (CIDR, "10.0.0.0/8", "10.0.0.0/8", "02080104" + "0a000000"),
        (CIDR, "10.1.2.3", "10.1.2.3/32", "02200104" + "0a010203"),
        (CIDR, "2001:db8::/32", "2001:db8::/32", "03200110" + "20010db8" + "00" * 12),
        (MAC, "0800.2b01.0203", "08:00:2b:01:02:03", "08002b010203"),
        (MAC8, "08-00-2b-01-02-03", "08:00:2b:ff:fe:01:02:03", "08002bfffe010203"),
        (MONEY, "(1,234.565)", "-$1,234.57", "fffffffffffe1dbf"),
        (LSN, "0/16b3748", "0/16B3748", "00000000016b3748"),
    ],
)
def test_forms(oid: int, text: str, printed: str, binary: str) -> None:
    value = text_input(oid, text)
    assert text_output(oid, value) == printed
    assert bytes(binary_output(oid, value)).hex() == binary
    assert binary_input(oid, bytes.fromhex(binary)) == value


@pytest.mark.parametrize(
    ("oid", "text"), [(INET, "1.2.3.4.5"), (INET, ""), (CIDR, "10.1.2.3/8"), (LSN, "0"), (LSN, "g/1")]
)
def test_bad_text_is_refused(oid: int, text: str) -> None:
    with pytest.raises(DataError) as caught:
        text_input(oid, text)
    assert caught.value.sqlstate == "22P02"


@pytest.mark.parametrize(
    "data", ["", "02", "022000047f0000", "09200004" + "7f000001", "02210004" + "7f000001"]
)
def test_bad_binary_is_refused(data: str) -> None:
    with pytest.raises(DataError) as caught:
        binary_input(INET, bytes.fromhex(data))
    short = len(data) < 8 or len(data) < 8 + 2 * int(data[6:8], 16)
    assert caught.value.sqlstate in (("08P01", "22P03") if short else ("22P03",))
