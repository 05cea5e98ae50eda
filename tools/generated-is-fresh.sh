#!/usr/bin/env bash
# Makes the generated code again and fails if that changed anything. It compares with what lay in the tree and not with what
# git has, so that it can be asked in the middle of a change; on a clean clone the two are the same.
#
# usage: generated-is-fresh.sh MAKE
set -euo pipefail

readonly make=${1:-make}

digest() {
  find . -name '*_templ.go' -not -path './tools/*' -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum
}

before=$(digest)
"$make" --no-print-directory generate
after=$(digest)

if [[ $before != "$after" ]]; then
  diff <(echo "$before") <(echo "$after") >&2 || true
  echo 'Generated code was not what its templates give. It has been made again: look at it and commit it.' >&2
  exit 1
fi
