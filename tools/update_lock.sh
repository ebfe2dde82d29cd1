#!/bin/sh
# Resolve pyproject.toml's bounds anew into requirements.lock (run in a clean checkout, then run make check).
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
python3 -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet --disable-pip-version-check ".[dev]"
{
  echo "# Everything make install installs, pinned. Update: tools/update_lock.sh"
  "$fresh/bin/python" -m pip freeze --exclude holdfast
} > requirements.lock
rm -rf "$fresh"
