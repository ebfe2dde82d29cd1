"""TLS of the server: the context of its certificate, and what SCRAM binds to."""

from __future__ import annotations

import ssl
from pathlib import Path

from engine.base.config import Config, ConfigError
from engine.base.private_files import check_private_key
from pgwire.auth.end_point import tls_server_end_point


def context(config: Config) -> ssl.SSLContext | None:
    """Return the settings of TLS connections, None when no certificate is configured; ConfigError if it is unusable."""
    if not config.tls_cert:
        return None
    check_private_key(config.tls_key)
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        made.load_cert_chain(config.tls_cert, config.tls_key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError(f"tls_cert {config.tls_cert} with tls_key {config.tls_key}: {error}") from None
    return made


def end_point(config: Config) -> bytes:
    """Return the channel binding of the configured certificate, the first of its file; empty where there is none."""
    if not config.tls_cert:
        return b""
    text = Path(config.tls_cert).read_text(encoding="ascii", errors="replace")
    start = text.index(ssl.PEM_HEADER)
    stop = text.index(ssl.PEM_FOOTER, start) + len(ssl.PEM_FOOTER)
    return tls_server_end_point(ssl.PEM_cert_to_DER_cert(text[start:stop]))
