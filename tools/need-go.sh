#!/usr/bin/env bash
# Says what to do where Go is missing, or is so old that it cannot read go.mod and would answer with a riddle: from 1.21 on,
# Go itself fetches or names the version that it needs. It prints nothing when all is well.
#
# usage: need-go.sh GO
set -euo pipefail

readonly go=${1:-go}
readonly oldest_minor=21
needed=$(sed -n 's/^go //p' "$(dirname "$0")/../go.mod")

if ! version=$("$go" env GOVERSION 2>/dev/null); then
  echo "Usher is built with Go $needed or later, and there is no Go in PATH. Install it from https://go.dev/dl/ and type the command again." >&2
  exit 1
fi
if [[ $version =~ ^go1\.([0-9]+) ]] && ((BASH_REMATCH[1] < oldest_minor)); then
  echo "Usher is built with Go $needed or later; this is $version. Install a newer one from https://go.dev/dl/ and type the command again." >&2
  exit 1
fi
