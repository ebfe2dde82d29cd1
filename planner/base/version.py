"""Holdfast's own version: what ``SELECT version()`` and ``holdfast --version`` tell, and what ``pyproject.toml`` reads.

The number of PostgreSQL whose behaviour it has is another one (``server_version``).
"""

from typing import Final

VERSION: Final = "0.2.0"
