"""Where an object store is: the URL of the ``blob`` setting, and its forms for people, pyarrow and Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, urlsplit

CACHE_FOLDER: Final = "cache"
"""Below a server's own directory: local copies of what it has read."""
_OPTIONS: Final = {"s3": ("endpoint_override", "region", "scheme"), "gs": ("endpoint_override", "scheme")}
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]\Z")
_PREFIX: Final = re.compile(r"(?:[A-Za-z0-9._=-]+/)*\Z")


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """Where an object store is: ``s3://bucket/prefix?endpoint_override=host:port&scheme=http&region=...``."""

    scheme: str
    bucket: str
    prefix: str
    """Empty, or ends with ``/``."""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def root(self) -> str:
        """What names are appended to, for pyarrow."""
        return f"{self.bucket}/{self.prefix}"

    @property
    def name(self) -> str:
        """What people are told."""
        return f"{self.scheme}://{self.root}".rstrip("/")

    @property
    def spark(self) -> str:
        """What Spark calls it; ends with ``/``."""
        return f"{'s3a' if self.scheme == 's3' else self.scheme}://{self.root}"


def is_object_url(text: str) -> bool:
    """Return whether a location names an object store rather than a directory."""
    return text.startswith(("s3://", "gs://"))


def parse_object_url(text: str) -> ObjectUrl:
    """Read an object store's URL. Raises ValueError, which does not show the URL: there may be a secret in it."""
    parts = urlsplit(text)
    if not is_object_url(text):
        raise ValueError("an object store is s3://bucket/prefix or gs://bucket/prefix")
    if "@" in parts.netloc or ":" in parts.netloc:
        raise ValueError(
            "credentials do not belong into the URL of an object store: give them by the environment "
            "(AWS_ACCESS_KEY_ID, ...) or the standard configuration files"
        )
    if not _BUCKET.match(parts.netloc):
        raise ValueError(f"{parts.netloc!r} is not the name of a bucket")
    prefix = parts.path.strip("/") + "/" if parts.path.strip("/") else ""
    if not _PREFIX.match(prefix) or ".." in prefix or parts.fragment:
        raise ValueError("the path in an object store is of letters, digits and ._=- between single slashes")
    options: dict[str, str] = {}
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if key not in _OPTIONS[parts.scheme]:
            allowed = ", ".join(_OPTIONS[parts.scheme])
            raise ValueError(
                f"{key} is not an option of an object store ({allowed}; credentials by the environment)"
            )
        options[key] = value
    override = options.get("endpoint_override", "")
    if "://" in override:
        scheme, _, options["endpoint_override"] = override.partition("://")
        options.setdefault("scheme", scheme)
    if options.get("scheme", "https") not in ("http", "https"):
        raise ValueError("the scheme of an object store is http or https")
    return ObjectUrl(parts.scheme, parts.netloc, prefix, tuple(sorted(options.items())))
