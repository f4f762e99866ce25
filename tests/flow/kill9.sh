#!/bin/sh
# kill -9, often: of the daemon while readings come through a broker, through its own MQTT listener and over HTTP, and
# of the broker. Says for each how many readings were acknowledged, and how many of these are missing.
set -eu

usage() {
  cat <<EOF
Usage: tests/flow/kill9.sh [--kills N] PROGRAM

  --kills N   how often in each of the four ways (default 500: about half an hour)
  PROGRAM     the edgecase executable

EDGECASE_TEST_SEED replays the moments of the kills, EDGECASE_FLOW_LOSE=1 loses readings on purpose.

Example:
  tests/flow/kill9.sh --kills 100 build/release/cli/edgecase

Exit codes: 0 nothing is missing, 1 something is, or a test could not run, 2 wrong usage
EOF
}

kills=500
program=
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage; exit 0 ;;
    --kills) [ $# -ge 2 ] || { usage >&2; exit 2; }; kills=$2; shift ;;
    -*) usage >&2; exit 2 ;;
    *) program=$1 ;;
  esac
  shift
done
case $kills in '' | *[!0-9]* | 0) usage >&2; exit 2 ;; esac
[ -x "$program" ] || { echo "kill9.sh: no executable: '$program'" >&2; exit 2; }

flows=$(dirname "$0")
EDGECASE_PROGRAM=$(readlink -f "$program")
EDGECASE_FLOW_KILLS=$kills
export EDGECASE_PROGRAM EDGECASE_FLOW_KILLS
failed=0
for way in kill_mqtt kill_listener kill_http kill_broker; do
  echo "== $way"
  # A test that had to be skipped has shown nothing.
  if output=$(python3 "$flows/${way}_flow_test.py" 2>&1); then
    case $output in *skipped=*) failed=1 ;; esac
  else
    failed=1
  fi
  echo "$output"
done
exit $failed
