#!/usr/bin/env bash
# EdgeCase in a few minutes, from a bare clone on Debian 12 or 13: installs what the build needs, builds, starts the
# daemon in a private directory, publishes this board's own sensors to it over MQTT, shows them through the
# command line, then pulls the plug (kill -9) and shows that every reading is still there. Leaves nothing behind
# but the build; it can be run again and again, and beside a running EdgeCase.
#
#   packaging/quickstart.sh [--rounds N] [--with-broker] [--keep] [--no-install] [--program FILE]
#
#   --rounds N      how often the sensors are read, a second apart (default 10)
#   --with-broker   publish to a mosquitto of its own, which the daemon subscribes to, instead of to the daemon
#   --keep          leave the daemon (and the broker) running, and say how to use and stop them
#   --no-install    install nothing
#   --program FILE  use this edgecase executable instead of building one
#
# Exit codes: 0 all shown, 1 something failed, 2 wrong usage
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "quickstart.sh: $1; see --help" >&2; exit 2; }

top=$(cd "$(dirname "$0")/.." && pwd)
rounds=10
broker=no
keep=no
install=yes
program=
while [ $# -gt 0 ]; do
  case $1 in
    --rounds | --program) [ $# -ge 2 ] || wrong "$1 needs a value" ;;
  esac
  case $1 in
    --rounds) rounds=$2; shift ;;
    --program) program=$(realpath -e "$2") || wrong "no file $2"; shift ;;
    --with-broker) broker=yes ;;
    --keep) keep=yes ;;
    --no-install) install=no ;;
    -h | --help) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
[[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || wrong "--rounds takes a number from 1 to 9999"

# ---- Saying and showing

readonly kWaitSeconds=30
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n== %s\n' "$*"; }
fail() {
  echo "quickstart.sh: $1" >&2
  if [ -n "${directory:-}" ] && [ -s "$directory/daemon.log" ]; then
    echo "The daemon's last lines:" >&2
    tail -n 20 "$directory/daemon.log" >&2
  fi
  exit 1
}
# Prints a command as one would type it, then runs it.
show() {
  local word line='$ edgecase'
  for word in "$@"; do
    case $word in *[\*\ ]*) line+=" '$word'" ;; *) line+=" $word" ;; esac
  done
  printf '\n%s\n' "$line"
  edgecase "$@" || fail "\`edgecase $*\` failed with exit code $?"
}
# Waits until a command succeeds.
until_true() {
  local what=$1 deadline=$((SECONDS + kWaitSeconds))
  shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || fail "waited $kWaitSeconds s in vain: $what"
    sleep 0.1
  done
}

# ---- Installing and building

if [ $install = yes ]; then
  say "Installing what the build and this tour need"
  "$top/packaging/install-dependencies.sh" build tests
  echo "Everything is there."
fi
if [ -z "$program" ]; then
  say "Building"
  (cd "$top" && packaging/configure.sh release >/dev/null &&
    cmake --build --preset release --parallel "$(nproc)" --target edgecase) || fail "the build failed"
  program=$top/build/release/cli/edgecase
fi

# ---- A private directory, the daemon, and a broker if asked for

directory=$(mktemp -d "${TMPDIR:-/tmp}/edgecase-quickstart.XXXXXX")
chmod 700 "$directory"
broker_id=
daemon_id=
clean_up() {
  local result=$?
  trap - EXIT INT TERM HUP
  if [ "$keep" = yes ] && [ $result -eq 0 ]; then exit 0; fi
  local id
  for id in $daemon_id $broker_id; do
    kill "$id" 2>/dev/null || continue
    timeout "$kWaitSeconds" tail --pid="$id" -f /dev/null || kill -9 "$id" 2>/dev/null || true
    wait "$id" 2>/dev/null || true
  done
  rm -rf "$directory"
  exit $result
}
trap clean_up EXIT
trap 'exit 1' INT TERM HUP

mkdir "$directory/bin"
ln -s "$program" "$directory/bin/edgecase"
PATH=$directory/bin:/usr/sbin:/sbin:$PATH
# So the command line finds this daemon and no other.
export EDGECASE_HTTP_SOCKET=$directory/edgecase.sock
unset EDGECASE_HOST EDGECASE_TOKEN EDGECASE_NAMESPACE

host=localhost
publish() { mosquitto_pub -h "$host" -p "$port" -q 1 -t "$1" -m "$2"; }

start_broker() {
  local attempt
  for attempt in {1..20}; do
    port=$((20000 + RANDOM))
    # It listens on one address; a machine may have no IPv4, and a port may be taken.
    host=127.0.0.1
    [ $((attempt % 2)) -eq 1 ] || host=::1
    printf '%s\n' "listener $port $host" 'allow_anonymous true' "user $(id -un)" 'max_queued_messages 0' \
      'persistence true' "persistence_location $directory/broker/" >"$directory/mosquitto.conf"
    setsid mosquitto -c "$directory/mosquitto.conf" </dev/null >"$directory/mosquitto.log" 2>&1 &
    broker_id=$!
    while kill -0 $broker_id 2>/dev/null; do
      # A port that something else listens on: ours has ended then.
      if publish edgecase-quickstart/hello 1 2>/dev/null && kill -0 $broker_id 2>/dev/null; then return; fi
      sleep 0.1
    done
    wait $broker_id || true
  done
  cat "$directory/mosquitto.log" >&2
  fail "no broker after $attempt attempts"
}

mqtt_connected() { edgecase status --json | tr -d ' \n' | grep -q '"mqtt":{[^}]*"connected":true'; }
start_daemon() {
  setsid edgecase serve --config "$directory/edgecase.toml" </dev/null >>"$directory/daemon.log" 2>&1 &
  daemon_id=$!
  until_true "the daemon answers" edgecase status
  if [ $broker = yes ]; then
    until_true "the daemon is connected to the broker" mqtt_connected
  else
    # The daemon takes a free port; its status says which.
    port=$(edgecase status --json | tr -d ' \n' | sed -n 's/.*"address":"localhost:\([0-9]*\)".*/\1/p')
    [ -n "$port" ] || fail "the daemon takes no MQTT connections"
  fi
}

mkdir "$directory/onboard" "$directory/ssd"
if [ $broker = yes ]; then
  say "Starting a broker and the daemon in $directory"
  mkdir "$directory/broker"
  start_broker
  case $host in *:*) at="[$host]" ;; *) at=$host ;; esac
  mqtt="broker = \"mqtt://$at:$port\""
else
  say "Starting the daemon in $directory"
  mqtt='broker = ""
listen = "localhost:0"              # on a board: "localhost:1884"'
fi
cat >"$directory/edgecase.toml" <<TOML
[storage]
metadata = "$directory/onboard"   # on a board: its own NVMe
values   = "$directory/ssd"       # on a board: the external SSD

[http]
socket = "$directory/edgecase.sock"
listen = "localhost:0"

[mqtt]
$mqtt

[[mqtt.rule]]
topic = "sensors/{device}/{sensor}"
TOML
cat "$directory/edgecase.toml"
start_daemon
show status

# ---- This board's own sensors

device=$(tr -cd 'A-Za-z0-9._-' </proc/sys/kernel/hostname)
device=${device:-board}

# Prints "sensor value" for whatever this board can tell of itself.
read_sensors() {
  local zone name value index=0 interface
  for zone in /sys/class/thermal/thermal_zone*; do
    value=$(cat "$zone/temp" 2>/dev/null) || continue
    name=$(tr -c 'A-Za-z0-9\n' '-' <"$zone/type" 2>/dev/null || echo zone)
    awk -v s="temperature-$name-$index" -v v="$value" 'BEGIN { printf "%s %.1f\n", s, v / 1000 }'
    index=$((index + 1))
  done
  awk '{ print "load-1min " $1 }' /proc/loadavg
  awk '$1 == "MemAvailable:" { printf "memory-available-mib %.1f\n", $2 / 1024 }' /proc/meminfo
  # Whole disks, not their partitions; a sector here is always 512 bytes.
  awk '$3 ~ /^(sd[a-z]+|vd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+)$/ && $6 + $10 > 0 {
         printf "disk-%s-read-mib %.1f\ndisk-%s-written-mib %.1f\n", $3, $6 / 2048, $3, $10 / 2048
       }' /proc/diskstats
  for interface in /sys/class/net/*; do
    name=${interface##*/}
    value=$(cat "$interface/statistics/rx_bytes" 2>/dev/null) && echo "network-$name-received-bytes $value"
    value=$(cat "$interface/statistics/tx_bytes" 2>/dev/null) && echo "network-$name-sent-bytes $value"
  done
  return 0
}
published=0
publish_sensors() {
  local sensor value
  while read -r sensor value; do
    publish "sensors/$device/$sensor" "$value"
    published=$((published + 1))
  done < <(read_sensors)
}
stored_count() { edgecase query "$device/*" --format ndjson | wc -l; }
all_stored() { [ "$(stored_count)" -eq "$published" ]; }

say "Publishing this board's sensors with mosquitto_pub: $rounds rounds to sensors/$device/{sensor}"
for ((round = 1; round <= rounds; round++)); do
  publish_sensors
  [ ! -t 1 ] || printf '\rround %d of %d: %d messages' "$round" "$rounds" "$published"
  [ "$round" -eq "$rounds" ] || sleep 1
done
echo
until_true "all $published messages are stored" all_stored
echo "All $published are stored."

# ---- Looking at them

say "What is stored"
show series

say "The newest value of each"
show last "$device/*"

say "The load, reading by reading, and as means of five seconds"
show query "$device/load-1min" --since 1h
show query "$device/load-1min" --since 1h --every 5s --agg mean

say "Out again, as CSV"
show export "$device/*" -o "$directory/before.csv" --format csv
head -n 4 "$directory/before.csv"
echo "... $(wc -l <"$directory/before.csv") lines"

# ---- Pulling the plug

say "Pulling the plug: one more write, acknowledged, and then kill -9"
show write "$device/last-words" 42
published=$((published + 1))
kill -9 $daemon_id
wait $daemon_id 2>/dev/null || true
daemon_id=
if [ $broker = yes ]; then
  echo "The daemon is gone. Meanwhile the sensors publish on; the broker keeps that for it."
  publish_sensors
else
  echo "The daemon is gone. What a sensor publishes now is not acknowledged, so it knows to send it again:"
  publish "sensors/$device/last-words" 43 2>&1 && fail "something acknowledged a message, and it is not EdgeCase"
fi

say "Starting it again"
start_daemon
if [ $broker = no ]; then publish_sensors; fi
until_true "all $published readings are stored" all_stored
show last "$device/last-words"
show export "$device/*" -o "$directory/after.csv" --format csv
lost=$(LC_ALL=C comm -23 <(LC_ALL=C sort "$directory/before.csv") <(LC_ALL=C sort "$directory/after.csv") | wc -l)
[ "$lost" -eq 0 ] || fail "$lost readings from before the crash are missing"
echo "Every reading from before is there, and those published since: $(stored_count) in all."

# ---- The end

if [ $keep = yes ]; then
  disown -a
  say "Left running, as you asked"
  cat <<TEXT
To use it:
  export PATH=$directory/bin:\$PATH EDGECASE_HTTP_SOCKET=$EDGECASE_HTTP_SOCKET
  mosquitto_pub -p $port -t sensors/$device/my-sensor -m 21.5
  edgecase last '*/*'
To stop it and remove everything:
  kill $daemon_id${broker_id:+ $broker_id}; rm -rf $directory
TEXT
else
  say "Done. Stopping what was started; nothing is left behind but the build"
fi
