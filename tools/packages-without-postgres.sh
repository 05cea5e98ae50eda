#!/usr/bin/env bash
# Names the packages that have tests of which none starts PostgreSQL: few enough and fast enough for the race detector.
set -euo pipefail

# What a test imports that brings up a private server.
readonly needs_server='usher/internal/base/pg'

go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}{{end}}' ./... |
  grep -v -F -e "$needs_server" -e '^$' |
  cut -d' ' -f1
