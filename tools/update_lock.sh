#!/bin/sh
# Resolve pyproject.toml's bounds anew into requirements.lock (run in a clean checkout, then run make check).
set -eu
cd "$(dirname "$0")/.."
fresh=$(mktemp -d)
python3 -m venv "$fresh"
"$fresh/bin/python" -m pip install --quiet --disable-pip-version-check ".[dev]"
{
  echo "# Everything make install installs, pinned. Update: tools/update_lock.sh"
  # atheris has wheels for Linux on x86_64 only
  "$fresh/bin/python" -m pip freeze --exclude holdfast |
    sed '/^atheris==/s/$/; sys_platform == "linux" and platform_machine == "x86_64"/'
} > requirements.lock
rm -rf "$fresh"
