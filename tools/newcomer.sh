#!/usr/bin/env bash
# Does what somebody does who has just cloned Usher, twice: as root, and as an ordinary user; each from a clone in a directory
# that is closed to everybody else, with nothing in the data directory. The demo must seat the sample school, start a second
# time over what it left, and leave no PostgreSQL running. It judges what is committed, not what lies in the work tree.
#
# usage (as root): newcomer.sh [--with-tests]
#   --with-tests: the ordinary user also runs the tests of what depends on who runs it: the private server with its
#   directories and rights, the folders that are written into, the schema, and the program's stories about such a server.
#   All the others do the same for everybody, and are left to make test.
set -euo pipefail

readonly user=usherci
readonly user_home=/home/$user
readonly demo_limit_seconds=300
readonly leave_limit_seconds=20

# What the report says whatever the sample holds: a number of people were seated.
readonly summary='([0-9].*seated|seated.*[0-9])'

with_tests=false
case ${1:-} in
'') ;;
--with-tests) with_tests=true ;;
*)
  echo "newcomer.sh does not know $1; usage: newcomer.sh [--with-tests]" >&2
  exit 2
  ;;
esac
if [[ $(id -u) -ne 0 ]]; then
  echo 'newcomer.sh makes a user, and only root may: type sudo tools/newcomer.sh' >&2
  exit 2
fi

cd "$(dirname "$0")/.."
here=$PWD
go_bin=$(dirname "$(readlink -f "$(command -v go)")")

# The root of PostgreSQL's data must be reachable for the user that the server runs as: open to pass through, nothing more.
work=$(mktemp -d /var/tmp/usher-newcomer.XXXXXX)
chmod 711 "$work"
user_is_ours=false
clean_up() {
  end_servers "$work" none
  rm -rf "$work"
  if $user_is_ours; then
    end_servers "$user_home" "$(id -u "$user")"
    userdel --remove "$user" 2>/dev/null || echo "The user $user could not be removed." >&2
  fi
}
trap clean_up EXIT

fail() {
  echo "newcomer: $*" >&2
  exit 1
}

say() {
  echo "newcomer: $*"
}

# clean_env HOME VAR=VALUE…: what a login gives, and the caller's settings of how Go fetches modules.
clean_env() {
  local home=$1
  shift
  printf '%s\n' "HOME=$home" "PATH=$go_bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" LANG=C.UTF-8 CI=true \
    "GOPROXY=$(go env GOPROXY)" "GOSUMDB=$(go env GOSUMDB)" "GOTOOLCHAIN=$(go env GOTOOLCHAIN)" "$@"
}

# seats_the_school WHO LOG COMMAND…: the demo ends well and its report says that people were seated.
seats_the_school() {
  local who=$1 log=$2
  shift 2
  if ! timeout --kill-after=10 "$demo_limit_seconds" "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    fail "$who: the demo failed"
  fi
  if ! grep -Eiq "$summary" "$log"; then
    cat "$log" >&2
    fail "$who: the demo's report does not say how many were seated"
  fi
}

# servers_of DIR UID: the processes of PostgreSQL or Usher that work in DIR or run as UID. A server's helpers rewrite their
# command line, and so are known by the directory they are in.
servers_of() {
  local dir=$1 uid=$2 process name at owner
  for process in /proc/[0-9]*; do
    name=$(cat "$process/comm" 2>/dev/null) || continue
    [[ $name == postgres || $name == usher ]] || continue
    at=$(readlink "$process/cwd" 2>/dev/null) || continue
    owner=$(stat -c %u "$process" 2>/dev/null) || continue
    if [[ $at == "$dir" || $at == "$dir"/* || $owner == "$uid" ]]; then
      echo "${process#/proc/} $name in $at"
    fi
  done
}

# end_servers DIR UID ends what a demo that failed has left behind: it was started here, and by nobody else.
end_servers() {
  local process rest
  while read -r process rest; do
    echo "newcomer: ending $process $rest" >&2
    kill -QUIT "$process" 2>/dev/null || true
  done < <(servers_of "$1" "$2")
}

leaves_nothing_running() {
  local who=$1 dir=$2 uid=$3 left
  local -r until=$((SECONDS + leave_limit_seconds))
  while left=$(servers_of "$dir" "$uid") && [[ -n $left ]]; do
    ((SECONDS < until)) || fail "$who: still running after the demo ended: $left"
    sleep 0.1
  done
}

as_root() {
  local -r closed=$work/closed data=$work/data
  local -a environment
  mkdir -m 700 "$closed"
  mkdir "$data"
  git clone -q "$here" "$closed/usher"
  # Root's own caches are used: they change how long it takes and nothing else.
  mapfile -t environment < <(clean_env "$closed" "GOMODCACHE=$(go env GOMODCACHE)" "GOCACHE=$(go env GOCACHE)")
  local -ar run=(env -i -C "$closed/usher" "${environment[@]}")

  say 'root builds'
  "${run[@]}" make --no-print-directory build
  local start
  for start in first second; do
    say "root's $start demo"
    seats_the_school root "$work/root.log" "${run[@]}" bin/usher demo --no-serve --dir "$data"
    leaves_nothing_running root "$data" none
  done
}

as_ordinary_user() {
  local -a environment
  if ! id -u "$user" >/dev/null 2>&1; then
    useradd --create-home --home-dir "$user_home" --shell /bin/bash "$user"
    user_is_ours=true
  fi
  chmod 700 "$user_home"
  rm -rf "$user_home/usher" "$user_home/data"
  git clone -q --no-hardlinks "$here" "$user_home/usher"
  chown -R "$user:" "$user_home/usher"
  mapfile -t environment < <(clean_env "$user_home" "USER=$user" "LOGNAME=$user")
  local -ar run=(runuser -u "$user" -- env -i -C "$user_home/usher" "${environment[@]}")

  say 'an ordinary user builds'
  "${run[@]}" make --no-print-directory build
  local start
  for start in first second; do
    say "an ordinary user's $start demo"
    seats_the_school 'an ordinary user' "$work/user.log" "${run[@]}" bin/usher demo --no-serve --dir "$user_home/data"
    leaves_nothing_running 'an ordinary user' "$user_home" "$(id -u "$user")"
  done
  say "an ordinary user's make demo, where nobody chose a directory"
  seats_the_school 'an ordinary user' "$work/user.log" "${run[@]}" make demo ARGS=--no-serve
  leaves_nothing_running 'an ordinary user' "$user_home" "$(id -u "$user")"
  if $with_tests; then
    say 'an ordinary user tests what depends on who runs it'
    "${run[@]}" make --no-print-directory test-of-user </dev/null
    leaves_nothing_running "an ordinary user's tests" "$user_home" "$(id -u "$user")"
  fi
}

as_root
as_ordinary_user
say 'root and an ordinary user were both served'
