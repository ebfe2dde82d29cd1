#!/bin/sh
# Install the clients that tests/drivers runs into .drivers (pip and npm, pinned), apart from the product's own environment.
set -eu
cd "$(dirname "$0")/.."
mkdir -p .drivers
test -x .drivers/venv/bin/python || "${PYTHON:-python3}" -m venv .drivers/venv
.drivers/venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-drivers.lock
# the source archives of SQLAlchemy and Django hold their tests
for name in SQLAlchemy Django; do
  version=$(sed -n "s/^$name==//Ip" requirements-drivers.lock)
  folder=$(echo "$name" | tr A-Z a-z)-$version
  if [ ! -d ".drivers/$folder" ]; then
    .drivers/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$name" \
      --dest .drivers "$name==$version"
    tar -xzf ".drivers/$folder.tar.gz" -C .drivers
  fi
done
# of those of drivers only the tests are unpacked: what lies beside them would be found instead of what is installed
mkdir -p .drivers/suites
for suite in asyncpg/tests psycopg2/tests pg8000/test; do
  name=${suite%/*}
  version=$(sed -nE "s/^$name(-binary)?==//Ip" requirements-drivers.lock)
  if [ ! -d ".drivers/suites/$name-$version" ]; then
    .drivers/venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary "$name" \
      --dest .drivers/suites "$name==$version" || { echo "left out: the tests of $name"; continue; }
    tar -xzf ".drivers/suites/$name-$version.tar.gz" -C .drivers/suites "$name-$version/${suite#*/}"
  fi
done
# pgAdmin pins what it needs, so it has an environment of its own
test -x .drivers/pgadmin/bin/python || "${PYTHON:-python3}" -m venv .drivers/pgadmin
.drivers/pgadmin/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-pgadmin.lock
# DuckDB's extension is of the version that it was built for, not the product's
test -x .drivers/duckdb/bin/python || "${PYTHON:-python3}" -m venv .drivers/duckdb
.drivers/duckdb/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r requirements-duckdb.lock
if command -v npm >/dev/null; then
  cp tests/drivers/clients/package.json tests/drivers/clients/package-lock.json .drivers/
  npm ci --silent --ignore-scripts --no-audit --no-fund --prefix .drivers
else
  echo "no npm: the Node clients are left out"
fi
for package in odbc-postgresql libodbc2 libdbd-pg-perl libhibernate3-java libjavassist-java libspring-context-java libspring-jdbc-java libspring-orm-java \
  ruby-pg ruby-activerecord ruby-railties ruby-sequel php-cli php-pgsql php-illuminate-database php-doctrine-orm \
  golang-go golang-github-jackc-pgx-v4-dev golang-github-jmoiron-sqlx-dev golang-github-jinzhu-gorm-dev \
  libpq-dev libecpg-dev libpqxx-dev; do
  dpkg -s "$package" >/dev/null 2>&1 || echo "left out unless installed: apt-get install $package"
done
