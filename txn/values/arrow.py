"""Names for what pyarrow makes, which comes without types."""

from __future__ import annotations

from typing import Any, TypeAlias

ArrowTable: TypeAlias = Any
"""A pyarrow.Table."""
