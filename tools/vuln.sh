#!/usr/bin/env bash
# Asks govulncheck which known vulnerabilities the program can reach. Its database is made here from the pinned vulndb module,
# so the answer needs no network and is the same tomorrow: raising the pin in tools/vuln/go.mod brings newer reports.
# The standard library's own are judged for the Go that runs this: a release runs it with GOTOOLCHAIN set to go.mod's.
set -euo pipefail

readonly modfile=tools/vuln/go.mod

# indexdb wants one directory of reports and writes what govulncheck reads as a database.
db=$(mktemp -d)
trap 'rm -rf "$db"' EXIT

go mod download -modfile="$modfile" golang.org/x/vulndb
reports=$(go list -modfile="$modfile" -m -f '{{.Dir}}' golang.org/x/vulndb)/data/osv
go tool -modfile="$modfile" indexdb -vulns "$reports" -out "$db"
go tool -modfile="$modfile" govulncheck -db "file://$db" ./...
