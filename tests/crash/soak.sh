#!/usr/bin/env bash
# Lives of the crash harness for as long as you like: builds it, optimized, and runs seed after seed. A seed
# that breaks a promise is printed at once with its plan, shrunk; every minute a line says how far it is.
#
#   tests/crash/soak.sh --hours N [--first SEED]
#   tests/crash/soak.sh --seeds N [--first SEED]
#   tests/crash/soak.sh --seed SEED      one life: its plan, what became of it, and what is left of that shrunk
#   tests/crash/soak.sh --plan FILE      the same of a plan's text
#
# Ctrl-C ends it with its summary. Exit codes: 0 every promise was held, 1 one was broken, 2 wrong usage
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
case "${1:-}" in
  --hours | --seeds | --seed | --plan) [ $# -ge 2 ] || { usage >&2; exit 2; } ;;
  -h | --help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
[ "$1" != --plan ] || set -- --plan "$(realpath "$2")"

cd "$(dirname "$0")/../.."
cmake --preset release --log-level=WARNING >&2
cmake --build --preset release --target crash_soak >&2
exec nice build/release/tests/crash_soak "$@"
