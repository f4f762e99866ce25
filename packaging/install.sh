#!/bin/sh
# Installs what lies beside it, for systems without dpkg; release.sh puts it into each archive. Run as root.
#
#   ./install.sh [--root DIR] [--no-start]
#
#   --root DIR   install below DIR instead of /, and start nothing
#   --no-start   neither enable nor start the service
#
# A configuration that is there already is kept. Installing again is an upgrade.
# Exit codes: 0 installed, 1 failed, 2 wrong usage
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=
start=yes
while [ $# -gt 0 ]; do
  case $1 in
    --root) [ $# -gt 1 ] || { echo "install.sh: --root needs a directory; see --help" >&2; exit 2; }
      root=$2; start=no; shift ;;
    --no-start) start=no ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "install.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done
fail() { echo "install.sh: $1" >&2; exit 1; }

# Of another architecture, or of a newer libc than is here.
made_for=$(cat "$here/made-for")
if [ -z "$root" ] && ! "$here/usr/bin/edgecase" version >/dev/null 2>&1; then
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null) || libc="no glibc"
  fail "does not run here: made for $made_for, this is $(uname -m) with $libc; the musl archives need no libc"
fi
[ -n "$root" ] || [ "$(id -u)" -eq 0 ] || fail "needs root rights: run it with sudo, or with --root DIR"

umask 022
find "$here" -mindepth 2 ! -type d | while read -r file; do
  target=$root/${file#"$here"/}
  case $target in
    */etc/edgecase/edgecase.toml) [ ! -e "$target" ] || continue ;;
  esac
  mkdir -p "$(dirname "$target")"
  # Renamed into its place: a program that runs cannot be written over.
  cp -P "$file" "$target.new" && mv -f "$target.new" "$target" || fail "cannot write $target"
done || exit 1
[ -z "$root" ] || exit 0

if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers edgecase.conf
  systemd-tmpfiles --create edgecase.conf || true
else
  echo "install.sh: no systemd: make the user edgecase, give it /var/lib/edgecase, and run edgecased" >&2
  exit 0
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  if [ $start = yes ]; then
    systemctl enable edgecased.service
    systemctl restart edgecased.service
  fi
fi
