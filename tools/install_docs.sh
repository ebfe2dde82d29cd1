#!/bin/sh
# Install what `make docs-site` builds with into .docs, pinned, apart from the product's own environment. From pip: mkdocs and its theme.
# From npm: two scripts that pages would else ask another machine for (diagrams; search in a page that is opened as a file).
set -eu
cd "$(dirname "$0")/.."
mkdir -p .docs
test -x .docs/venv/bin/python || "${PYTHON:-python3}" -m venv .docs/venv
.docs/venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-docs.lock
script() { # package, version, file within it, name here
  if ! command -v npm >/dev/null; then
    echo "left out, as npm is not there: $1; pages ask unpkg.com for it"
    return
  fi
  (cd .docs && npm pack --silent "$1@$2" >/dev/null)
  tar -xzOf ".docs/$1-$2.tgz" "package/$3" >".docs/$4"
  rm ".docs/$1-$2.tgz"
}
script mermaid 11.12.2 dist/mermaid.min.js mermaid.min.js
script iframe-worker 1.0.3 shim/index.js iframe-worker.min.js
