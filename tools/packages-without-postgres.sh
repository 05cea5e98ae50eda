#!/usr/bin/env bash
# Names the packages that have tests of which none starts PostgreSQL: few enough and fast enough for the race detector.
set -euo pipefail

go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' ./... |
  grep -v -E -e '^$' -e 'usher/internal/(base/pg|domain/testdb)([/ ]|$)' |
  cut -d' ' -f1
