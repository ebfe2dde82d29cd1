"""The channel binding of certificates that openssl makes, by the hash of their signature."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from pgwire.auth.end_point import tls_server_end_point


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (["-newkey", "rsa:2048", "-sha1"], "sha256"),
        (["-newkey", "rsa:2048", "-sha256"], "sha256"),
        (["-newkey", "rsa:2048", "-sha512"], "sha512"),
        (["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-sha384"], "sha384"),
        (["-newkey", "ed25519"], None),
    ],
)
def test_the_binding_is_a_hash_of_the_certificate(
    options: list[str], name: str | None, tmp_path: Path
) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl to make a certificate")
    subprocess.run(
        [openssl, "req", "-x509", "-nodes", "-subj", "/CN=x", "-days", "2", *options, "-out", "cert.pem", "-keyout", "key.pem"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    der = ssl.PEM_cert_to_DER_cert((tmp_path / "cert.pem").read_text())
    assert tls_server_end_point(der) == (hashlib.new(name, der).digest() if name else b"")
    for cut in range(0, len(der) - 1, 7):
        with pytest.raises(ValueError, match="not a certificate"):
            tls_server_end_point(der[:cut])
