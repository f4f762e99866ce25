#!/usr/bin/env bash
# Runs a command, such as a test, on a machine of its own kind of loopback: in a network namespace with nothing but
# that. Needs root rights, ip and unshare.
#
#   tests/flow/loopback.sh KIND COMMAND...
#
#   KIND   four: 127.0.0.1 alone; six: ::1 alone; both. In /etc/hosts localhost is ::1 first, as on Debian
#
# Example
#   tests/flow/loopback.sh six build/release/tests/daemon_tests -tc='sockets*'
#
# Exit codes: the command's; 2 wrong usage; 77 no such namespace can be made here
set -euo pipefail

if [ $# -lt 2 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  [ "${1:-}" = --help ] && exit 0 || exit 2
fi
kind=$1
shift
case $kind in
  four | six | both) ;;
  *) echo "$0: '$kind' is none of four, six, both" >&2; exit 2 ;;
esac
hosts=$(mktemp)
trap 'rm -f "$hosts"' EXIT
printf '%s\n' '::1 localhost ip6-localhost' '127.0.0.1 localhost' >"$hosts"
chmod 644 "$hosts"
if ! command -v ip >/dev/null || ! unshare --net --mount --propagation private true 2>/dev/null; then
  echo "no namespace of its own to be had"
  exit 77
fi
unshare --net --mount --propagation private bash -euc '
  kind=$1 hosts=$2
  shift 2
  mount --bind "$hosts" /etc/hosts
  if [ "$kind" = four ]; then
    echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
    echo 1 >/proc/sys/net/ipv6/conf/lo/disable_ipv6
  fi
  ip link set lo up
  [ "$kind" != six ] || ip address delete 127.0.0.1/8 dev lo
  exec "$@"' bash "$kind" "$hosts" "$@"
