"""The channel binding ``tls-server-end-point`` (RFC 5929): a hash of the server's certificate.

    Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID, ... }, signature }

The hash is that of the certificate's signature, SHA-256 where this is MD5 or SHA-1. A client that binds its proof to it
(``channel_binding=require``) notices anybody who ends its TLS connection with another certificate, even a trusted one.
Where the signature names no single hash (Ed25519, RSASSA-PSS) RFC 5929 defines no binding, and none is offered.
"""

from __future__ import annotations

import hashlib
from typing import Final

_SEQUENCE: Final = 0x30
_OBJECT_IDENTIFIER: Final = 0x06

_RSA: Final = bytes.fromhex("2a864886f70d0101")  # 1.2.840.113549.1.1
_ECDSA: Final = bytes.fromhex("2a8648ce3d0403")  # 1.2.840.10045.4.3
_HASHES: Final = {
    _RSA + b"\x04": "sha256",  # MD5
    _RSA + b"\x05": "sha256",  # SHA-1
    _RSA + b"\x0b": "sha256",
    _RSA + b"\x0c": "sha384",
    _RSA + b"\x0d": "sha512",
    _RSA + b"\x0e": "sha224",
    bytes.fromhex("2a8648ce3d0401"): "sha256",  # ECDSA with SHA-1
    _ECDSA + b"\x01": "sha224",
    _ECDSA + b"\x02": "sha256",
    _ECDSA + b"\x03": "sha384",
    _ECDSA + b"\x04": "sha512",
}


def tls_server_end_point(certificate: bytes) -> bytes:
    """Return the binding of a certificate in DER, ``b""`` where there is none.

    Raises:
        ValueError: not a certificate in DER.
    """
    outer, _ = _value(certificate, 0, _SEQUENCE)
    _, after = _value(outer, 0, _SEQUENCE)
    algorithm, _ = _value(outer, after, _SEQUENCE)
    oid, _ = _value(algorithm, 0, _OBJECT_IDENTIFIER)
    name = _HASHES.get(oid)
    return hashlib.new(name, certificate).digest() if name is not None else b""


def _value(data: bytes, at: int, tag: int) -> tuple[bytes, int]:
    """Return the contents of the element at ``at`` and where the next one begins."""
    if len(data) < at + 2 or data[at] != tag:
        raise ValueError("not a certificate in DER")
    length, start = data[at + 1], at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    if len(data) < start + length:
        raise ValueError("not a certificate in DER")
    return data[start : start + length], start + length
