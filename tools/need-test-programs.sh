#!/usr/bin/env bash
# Looks for the programs with which the tests read back what Usher made: PDFs as text and as pictures, QR codes, pages in a
# browser. As root on Debian it installs those that are missing; anybody else is told what to type. Likewise the locale of
# French servers, under which names are sorted once more: who cannot make it does without, and the test says so.
set -euo pipefail

readonly lock_wait_seconds=300

# program → Debian's package
declare -rA package_of=([pdftotext]=poppler-utils [pdftoppm]=poppler-utils [zbarimg]=zbar-tools [chromium]=chromium)

missing() {
  local program
  for program in "${!package_of[@]}"; do
    command -v "$program" >/dev/null || echo "${package_of[$program]}"
  done | sort -u
}

# Before any PostgreSQL of the tests starts: a running one keeps the locales that it found.
need_french() {
  if locale -a 2>/dev/null | grep -qix 'fr_FR\.utf-\?8'; then
    return
  fi
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null || ! command -v localedef >/dev/null; then
    echo "The locale fr_FR.UTF-8 is missing: one test of how names are sorted is skipped." >&2
    return
  fi
  echo "The tests need the locale fr_FR.UTF-8: making it." >&2
  if [[ ! -e /usr/share/i18n/locales/fr_FR ]]; then
    apt-get -qq -o "DPkg::Lock::Timeout=$lock_wait_seconds" update >&2
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o "DPkg::Lock::Timeout=$lock_wait_seconds" install -y --no-install-recommends locales >&2
  fi
  localedef -i fr_FR -f UTF-8 fr_FR.UTF-8
}

need_french
mapfile -t packages < <(missing)
if ((${#packages[@]} == 0)); then
  exit 0
fi

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
  echo "The tests need ${packages[*]}: installing." >&2
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o "DPkg::Lock::Timeout=$lock_wait_seconds" update >&2
  apt-get -qq -o "DPkg::Lock::Timeout=$lock_wait_seconds" install -y --no-install-recommends "${packages[@]}" >&2
  exit 0
fi

cat >&2 <<MESSAGE
The tests read back PDFs, QR codes and pages, and lack programs for it. On Debian or Ubuntu, type:

    sudo apt-get install ${packages[*]}

then type the command again.
MESSAGE
exit 1
