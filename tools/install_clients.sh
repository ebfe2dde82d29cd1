#!/bin/sh
# Install the clients that tests/drivers runs into .drivers (pip and npm, pinned), apart from the product's own environment.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .drivers
test -x .drivers/venv/bin/python || "${PYTHON:-python3}" -m venv .drivers/venv
.drivers/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-drivers.lock
