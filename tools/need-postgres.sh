#!/usr/bin/env bash
# Looks for the PostgreSQL programs that Usher starts its private servers with, the way the program itself looks: in PATH,
# then under Debian's /usr/lib/postgresql. As root on Debian it installs them; anybody else is told what to type.
# It prints nothing when they are there, so that the tests' own lines stay the only ones.
set -euo pipefail

readonly oldest_major=15
readonly lock_wait_seconds=300
readonly create_conf=/etc/postgresql-common/createcluster.conf

# usable DIR: this directory holds both programs, new enough. A lone `postgres` in PATH without `initdb` is not enough.
usable() {
  local dir=$1 version
  [[ -x $dir/initdb && -x $dir/postgres ]] || return 1
  version=$("$dir/postgres" --version 2>/dev/null) || return 1
  [[ $version =~ \(PostgreSQL\)\ ([0-9]+) ]] || return 1
  ((BASH_REMATCH[1] >= oldest_major))
}

present() {
  local dir path_dirs
  IFS=: read -r -a path_dirs <<<"$PATH"
  for dir in "${path_dirs[@]}" /usr/lib/postgresql/*/bin; do
    usable "$dir" && return 0
  done
  return 1
}

# install_without_cluster installs Debian's package, and keeps it from making and starting a server for the whole machine:
# Usher brings up its own, and a machine's port 5432 is not ours to take. The setting is put back afterwards.
install_without_cluster() {
  export DEBIAN_FRONTEND=noninteractive
  local -r apt=(apt-get -qq -o "DPkg::Lock::Timeout=$lock_wait_seconds")
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends postgresql-common
  cp -p "$create_conf" "$create_conf.before-usher"
  trap 'mv -f "$create_conf.before-usher" "$create_conf"' EXIT
  echo 'create_main_cluster = false' >>"$create_conf"
  "${apt[@]}" install -y --no-install-recommends postgresql
}

if present; then
  exit 0
fi

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "PostgreSQL $oldest_major or later is not on this machine: installing Debian's package postgresql." >&2
  install_without_cluster >&2
  if present; then
    exit 0
  fi
  echo "Debian's package postgresql was installed, and is older than PostgreSQL $oldest_major: install a newer one and type the command again." >&2
  exit 1
fi

cat >&2 <<MESSAGE
Usher needs the programs of PostgreSQL $oldest_major or later (initdb and postgres), and they are not on this machine.
On Debian or Ubuntu, type:

    sudo apt-get install postgresql

then type the command again. If they are somewhere else, put their directory in PATH.
MESSAGE
exit 1
