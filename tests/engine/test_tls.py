"""TLS as libpq asks for it: the certificate verified in full, the password bound to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.support.server import ServerProcess


def test_a_password_is_bound_to_the_verified_certificate(certificate: Path, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data")
    server.sql("ALTER ROLE postgres PASSWORD 'secret'")
    assert server.stop() == 0
    tls = ("--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem"))
    server = ServerProcess(tmp_path / "data", "--auth", "scram-sha-256", *tls)
    where = f"host=127.0.0.1 port={server.port} user=postgres dbname=postgres channel_binding=require"
    try:
        verified = f"{where} sslmode=verify-full sslrootcert={certificate / 'cert.pem'}"
        with psycopg.connect(f"{verified} password=secret") as connection:
            assert connection.pgconn.ssl_in_use
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(f"{verified} password=wrong")
        with pytest.raises(psycopg.OperationalError, match="channel binding"):
            psycopg.connect(f"{where} sslmode=disable password=secret")
    finally:
        assert server.stop() == 0


def test_an_unusable_certificate_is_named(certificate: Path, tmp_path: Path) -> None:
    words = ["serve", "--port", "0", "--data-dir", str(tmp_path / "data"), "--spark-start", "off"]
    key, missing = str(certificate / "key.pem"), str(certificate / "none.pem")
    for given in (["--tls-cert", key, "--tls-key", key], ["--tls-cert", missing, "--tls-key", key]):
        done = subprocess.run(
            [sys.executable, "-m", "engine", *words, *given], capture_output=True, text=True, timeout=60, check=False
        )  # fmt: skip
        assert done.returncode != 0
        assert done.stderr.startswith(f"holdfast: tls_cert {given[1]} with tls_key")
        assert "Traceback" not in done.stderr
