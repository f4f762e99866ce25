#!/usr/bin/env bash
# The package in a real Debian with its own systemd, in a container: installs, becomes active within its sandbox,
# takes readings over MQTT and the Unix socket, comes back after kill -9 and after hanging, takes keys and passwords
# from systemd and a drive that is mounted after its start, survives an upgrade, keeps the store when removed, leaves
# mounted drives alone when purged.
#
#   tests/flow/systemd.sh [--root DIR] [--package FILE] [--long]
#
#   --root DIR      a Debian 12 root to use; it is changed. Otherwise EDGECASE_SYSTEM_ROOT
#   --package FILE  the package to install; otherwise packaging/build-deb.sh makes it
#   --long          without a root: make one with debootstrap, and remove it. Otherwise EDGECASE_TEST_LONG=1
#
# Needs root rights, the network for what is missing in the root, and packaging/install-dependencies.sh system.
# Exit codes: 0 passed, 1 failed, 2 wrong usage, 77 skipped
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
root=${EDGECASE_SYSTEM_ROOT:-}
package=
long=${EDGECASE_TEST_LONG:-}
while [ $# -gt 0 ]; do
  case $1 in
    --root) root=$(realpath -e "${2:?}"); shift ;;
    --package) package=$(realpath -e "${2:?}"); shift ;;
    --long) long=1 ;;
    -h | --help) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) echo "systemd.sh: unknown option $1; see --help" >&2; exit 2 ;;
  esac
  shift
done
skip() { echo "skipped: $1"; exit 77; }
[ -n "$root$long" ] || skip "needs a Debian root (EDGECASE_SYSTEM_ROOT) or EDGECASE_TEST_LONG=1"
[ "$(id -u)" -eq 0 ] || skip "needs root rights"
tools="systemd-nspawn nsenter openssl"
[ -n "$root" ] || tools+=" debootstrap"
for tool in $tools; do
  command -v $tool >/dev/null || skip "needs $tool: packaging/install-dependencies.sh system"
done

readonly kWaitSeconds=60
readonly drop_ins=/etc/systemd/system/edgecased.service.d
scratch=$(mktemp -d "${TMPDIR:-/tmp}/edgecase-systemd.XXXXXX")
container_id=
clean_up() {
  local result=$?
  trap - EXIT
  if [ $result -ne 0 ] && [ -n "${leader:-}" ]; then
    inside journalctl --no-pager -u edgecased -n 40 || true
    inside systemctl status --no-pager edgecased || true
  fi
  if [ -n "$container_id" ]; then
    kill -TERM "$container_id" 2>/dev/null || true
    wait "$container_id" 2>/dev/null || true
  fi
  rm -rf --one-file-system "$scratch"
  case $result in
    0) echo "passed" ;;
    77) ;;
    *) echo "FAILED after: ${step:-the start}" ;;
  esac
  exit $result
}
trap clean_up EXIT
trap 'exit 1' INT TERM

step() { step=$*; echo "-- $*"; }
fail() { echo "systemd.sh: $*" >&2; exit 1; }
inside() { nsenter --target "$leader" --all -- "$@"; }
edgecase_as() { inside runuser -u "$1" -- edgecase "${@:2}"; }
until_true() {
  local deadline=$((SECONDS + kWaitSeconds))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || fail "waited $kWaitSeconds s in vain for: $*"
    # tidy: allow test-sleep: asks again after a moment; what is waited for decides
    sleep 0.2
  done
}
property() { inside systemctl show --value --property "$1" edgecased; }
is_active() { [ "$(property ActiveState)" = active ]; }
# The one line that says why it does not run; a start that is tried again takes it away for a moment.
status_says() { { inside systemctl status --no-pager edgecased || true; } | grep -q "Status: \".*$1"; }
install_package() {
  inside dpkg --install --force-confdef --force-confold "$1" >"$scratch/dpkg.log" 2>&1 </dev/null ||
    { cat "$scratch/dpkg.log" >&2; fail "dpkg"; }
}
# Active again, as another process than the one given.
is_another() {
  local now
  now=$(property MainPID)
  [ "$now" != 0 ] && [ "$now" != "$1" ] && is_active
}
last_value() { edgecase_as visitor last "$1" --format csv | tail -n 1 | cut -d, -f5; }
has_value() { [ "$(last_value "$1")" = "$2" ]; }
# Why the values drive takes no writes; "-": it does.
values_state() {
  edgecase_as visitor status | sed -n '/^  values$/,$ s/^    degraded  *//p' | grep -v ^since | head -n 1
}
is_whole() { [ "$(values_state)" = - ]; }
expect_value() { has_value "$1" "$2" || fail "$1 is '$(last_value "$1")', not $2"; }

# ---- A root, a package, a running systemd

if [ -z "$root" ]; then
  step "a fresh Debian 12 root"
  root=$scratch/root
  debootstrap --variant=minbase bookworm "$root" >"$scratch/debootstrap.log" ||
    { tail "$scratch/debootstrap.log" >&2; fail "debootstrap"; }
fi
# What surrounds us may not let a container start: in a container without the rights for one, for example.
in_container=(systemd-nspawn --quiet --directory="$root" --register=no --keep-unit --machine="edgecase-$$"
  --private-network --link-journal=no)
"${in_container[@]}" --pipe true </dev/null >"$scratch/probe.log" 2>&1 ||
  skip "systemd-nspawn cannot start a container here: $(tail -n 1 "$scratch/probe.log")"
if [ -z "$package" ]; then
  step "the package"
  package=$top/$("$top/packaging/build-deb.sh" --no-install 2>"$scratch/package.log" | tail -n 1) ||
    { tail "$scratch/package.log" >&2; fail "the package was not made"; }
fi
cp "$package" "$root/edgecase.deb"
# What an upgrade starts from: an older version, whose sample configuration and unit were others.
dpkg-deb --raw-extract "$package" "$scratch/older"
sed -i 's/^Version: .*/Version: 0.0.1/' "$scratch/older/DEBIAN/control"
echo "# As it was before." >>"$scratch/older/etc/edgecase/edgecase.toml"
sed -i '/^LimitCORE=/d' "$scratch/older/lib/systemd/system/edgecased.service"
dpkg-deb --root-owner-group --build "$scratch/older" "$root/older.deb" >/dev/null

step "what the package depends on"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
: >"$root/etc/fstab"
chroot "$root" sh -c 'export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update &&
  apt-get -qq -y install --no-install-recommends systemd systemd-sysv dbus iproute2 mosquitto mosquitto-clients &&
  apt-get -qq -y satisfy --no-install-recommends "$(dpkg-deb --field /edgecase.deb Depends)"' \
  >"$scratch/apt.log" 2>&1 </dev/null || { tail "$scratch/apt.log" >&2; fail "apt-get in the root"; }
rm "$root/usr/sbin/policy-rc.d"
chroot "$root" dpkg --purge edgecase >/dev/null 2>&1 || true
# What a run that failed left behind.
rm -rf "${root:?}"$drop_ins "${root:?}/etc/edgecase" "${root:?}/etc/mosquitto/conf.d/passwords.conf"

step "its systemd boots"
"${in_container[@]}" --boot </dev/null >"$scratch/boot.log" 2>&1 &
container_id=$!
leader=
find_leader() { leader=$(pgrep --parent "$container_id" | head -n 1) && [ -n "$leader" ]; }
is_booted() { case $(inside systemctl is-system-running) in running | degraded) ;; *) return 1 ;; esac }
until_true find_leader
find_leader
until_true is_booted
inside ip link set lo up
inside systemctl restart mosquitto

# ---- The life of a package

step "install: the service becomes active without a word of configuration"
install_package /older.deb
until_true is_active
[ "$(inside systemctl is-enabled edgecased)" = enabled ] || fail "not enabled"
inside id visitor >/dev/null 2>&1 || inside useradd --create-home visitor
inside usermod --append --groups edgecase visitor
inside id stranger >/dev/null 2>&1 || inside useradd --create-home stranger

step "a member of the group writes and reads; a stranger does not"
edgecase_as visitor status >/dev/null
edgecase_as visitor write kitchen/temperature 21.5
expect_value kitchen/temperature 21.5
if edgecase_as stranger last kitchen >/dev/null 2>&1; then fail "a stranger reads"; fi

step "a reading published over MQTT arrives"
published() { inside mosquitto_pub -h 127.0.0.1 -q 1 -t sensors/cellar/humidity -m 61 && has_value cellar/humidity 61; }
until_true published

step "the sandbox is the one of the unit"
main=$(property MainPID)
for setting in ProtectSystem=strict NoNewPrivileges=yes PrivateUsers=yes MemoryDenyWriteExecute=yes User=edgecase; do
  [ "$(property "${setting%%=*}")" = "${setting#*=}" ] || fail "$setting is not in force"
done
inside grep -q '^CapEff:\s*0000000000000000$' "/proc/$main/status" || fail "has capabilities"
inside grep -q '^Seccomp:\s*2$' "/proc/$main/status" || fail "no filter of system calls"
if inside nsenter --target "$main" --mount -- touch /usr/x 2>/dev/null; then fail "can write to /usr"; fi
[ "$(inside stat --format=%U:%G:%a /var/lib/edgecase)" = edgecase:edgecase:750 ] || fail "mode of the store"

step "restart: the readings are there"
figures=()
for _ in 1 2 3 4 5; do
  inside systemctl restart edgecased
  took=$(($(property ActiveEnterTimestampMonotonic) - $(property InactiveExitTimestampMonotonic)))
  figures+=("$((took / 1000))")
done
resident=$(inside sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$(property MainPID)/status")
echo "   from its start to ready: ${figures[*]} ms; resident then: $resident KiB"
inside systemctl restart edgecased
is_active
expect_value kitchen/temperature 21.5

step "kill -9: systemd starts it again, with what was acknowledged"
edgecase_as visitor write kitchen/temperature 22.5
main=$(property MainPID)
inside systemctl kill --kill-whom=main --signal=KILL edgecased
until_true is_another "$main"
expect_value kitchen/temperature 22.5

step "hanging: the watchdog has it started again"
inside mkdir -p $drop_ins
inside sh -c 'printf "[Service]\nWatchdogSec=2s\nTimeoutAbortSec=1s\n" >"$0"' $drop_ins/test.conf
inside systemctl daemon-reload
inside systemctl restart edgecased
main=$(property MainPID)
inside systemctl kill --kill-whom=main --signal=STOP edgecased
until_true is_another "$main"
expect_value kitchen/temperature 22.5
inside rm $drop_ins/test.conf
inside systemctl daemon-reload
inside systemctl restart edgecased

step "a wrong setting: the journal names it, and once it is mended the service comes back by itself"
inside cp /etc/edgecase/edgecase.toml /var/tmp/edgecase.toml
inside sh -c 'printf "[nonsense]\nkey = 1\n" >>/etc/edgecase/edgecase.toml'
inside systemctl restart edgecased 2>/dev/null && fail "started with a wrong setting"
inside journalctl --no-pager -u edgecased -n 20 | grep -q nonsense || fail "the journal does not name the setting"
inside cp /var/tmp/edgecase.toml /etc/edgecase/edgecase.toml
until_true is_active

step "a configuration that everybody may write: status says in one line what to do"
inside chmod o+w /etc/edgecase/edgecase.toml
inside systemctl restart edgecased 2>/dev/null && fail "started with it"
until_true status_says '/etc/edgecase/edgecase.toml:1:1: file: .*to do: '
inside chmod o-w /etc/edgecase/edgecase.toml
until_true is_active

step "a drive that is full, a root that takes no writes: status says what to do; once that is done, it runs by itself"
inside systemctl stop edgecased
inside mount -t tmpfs -o size=256m full /var/lib/edgecase
inside chown edgecase:edgecase /var/lib/edgecase
inside sh -c 'head -c 512M /dev/zero >/var/lib/edgecase/filler 2>/dev/null' || true
inside systemctl start edgecased 2>/dev/null && fail "started on a full drive"
until_true status_says '/var/lib/edgecase.*No space left on device.*to do: free space'
inside rm /var/lib/edgecase/filler
until_true is_active
inside systemctl stop edgecased
inside umount /var/lib/edgecase
# Whoever has a file open for writing keeps it from becoming so.
inside systemctl stop mosquitto
inside journalctl --relinquish-var
until_true inside mount -o remount,bind,ro /
inside systemctl start edgecased 2>/dev/null && fail "started on a root that takes no writes"
until_true status_says '/var/lib/edgecase.*Read-only file system, use '
inside mount -o remount,bind,rw /
until_true is_active
inside journalctl --flush
inside systemctl start mosquitto
expect_value kitchen/temperature 22.5

step "a port that is taken, a key that others read or the service does not, a newer store: status says what to do"
refused() {
  inside systemctl restart edgecased 2>/dev/null && fail "started"
  until_true status_says "$1"
}
inside systemctl stop edgecased
# tidy: allow fixed-port: the default one, in the container's own network
inside sh -c 'mosquitto -p 8650 >/dev/null 2>&1 & echo $! >/run/taker'
is_taken() { inside sh -c 'ss --listening --tcp --numeric --no-header "sport = 8650" | grep -q .'; }
until_true is_taken
refused ':8650.*to do: stop what has it, or set another http.socket, http.listen'
inside sh -c 'kill "$(cat /run/taker)"'
until_true is_active
inside sh -c 'head -c 32 /dev/urandom >/etc/edgecase/key && chmod 0404 /etc/edgecase/key'
inside sed -i 's|^encryption-key-file = .*|encryption-key-file = "/etc/edgecase/key"|' /etc/edgecase/edgecase.toml
refused '/etc/edgecase/key.*everybody can read it, run chmod 0400'
inside chmod 0400 /etc/edgecase/key
refused '/etc/edgecase/key.*chown edgecase'
inside cp /var/tmp/edgecase.toml /etc/edgecase/edgecase.toml
until_true is_active
inside sh -c 'cd /var/lib/edgecase && cp -p IDENTITY /var/tmp && systemctl stop edgecased && echo more >>IDENTITY &&
  printf "\002\000\000\000" | dd of=IDENTITY bs=1 seek=8 conv=notrunc status=none'
refused 'newer version of EdgeCase (format 2).*to do: install the version of EdgeCase that wrote the store'
inside sh -c 'cp -p /var/tmp/IDENTITY /var/lib/edgecase && rm /etc/edgecase/key'
until_true is_active
expect_value kitchen/temperature 22.5

step "keys and passwords as credentials: without them status says what to do"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$root/root/tls-key" -out "$root/etc/edgecase/board.crt" 2>/dev/null
inside sh -c 'head -c 32 /dev/urandom >/root/key && echo secret >/root/mqtt-password'
inside sed -i -e 's|^metadata = .*|metadata = "/var/lib/edgecase/sealed"|' \
  -e 's|^values = .*|values = "/var/lib/edgecase/sealed/values"|' \
  -e 's|^encryption-key-file = .*|encryption-key-file = "credential:key"|' -e 's|^username = .*|username = "board"|' \
  -e 's|^password-file = .*|password-file = "credential:mqtt-password"|' \
  -e '/^\[http\]/,/^\[mqtt\]/{s|^tls-cert = .*|tls-cert = "/etc/edgecase/board.crt"|
    s|^tls-key = .*|tls-key = "credential:tls-key"|}' /etc/edgecase/edgecase.toml
inside edgecase config check 2>/dev/null || fail "config check judges what the service alone has"
inside systemctl restart edgecased 2>/dev/null && fail "started without its key"
until_true status_says 'credential:key: systemd has handed no credentials .*to do: '

step "the example drop-in, with sealed credentials: encrypted drives, the broker's password, HTTPS"
inside sh -c 'umask 077 && mkdir -p /etc/credstore.encrypted && for name in key mqtt-password tls-key; do
  systemd-creds encrypt --name=$name /root/$name /etc/credstore.encrypted/edgecase.$name && rm /root/$name || exit 1
  done' >"$scratch/creds.log" 2>&1 || { cat "$scratch/creds.log" >&2; fail "systemd-creds"; }
inside sh -c 'sed "s/^#\(LoadCredentialEncrypted=\)/\1/" /usr/share/doc/edgecase/examples/credentials.conf >"$0"' \
  $drop_ins/credentials.conf
inside sh -c 'cd /etc/mosquitto && mosquitto_passwd -b -c passwords board secret && chown mosquitto passwords &&
  printf "allow_anonymous false\npassword_file /etc/mosquitto/passwords\n" >conf.d/passwords.conf'
inside systemctl restart mosquitto
inside systemctl daemon-reload
until_true is_active
is_connected() { edgecase_as visitor status --json | grep -q '"connected": *true'; }
until_true is_connected
edgecase_as visitor write kitchen/temperature 1
edgecase_as visitor status --json | grep -q '"at_rest": *true' || fail "the drives are not encrypted"
# tidy: allow fixed-port: the default one, in the container's own network
edgecase_as visitor status --host https://127.0.0.1:8650 --tls-ca /etc/edgecase/board.crt >/dev/null
sealed=/etc/credstore.encrypted/edgecase.key
if inside runuser -u edgecase -- cat $sealed >/dev/null 2>&1; then fail "reads what is sealed"; fi
inside rm $drop_ins/credentials.conf /etc/mosquitto/conf.d/passwords.conf /etc/edgecase/board.crt
inside cp /var/tmp/edgecase.toml /etc/edgecase/edgecase.toml
inside systemctl daemon-reload
inside systemctl restart mosquitto edgecased
expect_value kitchen/temperature 22.5

step "the values on a drive of their own, as config storage says: the drop-in that it prints, and --move"
inside mkdir -p /mnt/ssd
inside mount -t tmpfs -o size=64m,mode=0755 ssd /mnt/ssd
inside edgecase config storage --values /mnt/ssd/edgecase >"$scratch/storage.log" 2>&1 ||
  { cat "$scratch/storage.log" >&2; fail "config storage"; }
sed -n '/^\[Service\]/,/^$/p' "$scratch/storage.log" >"$root$drop_ins/values.conf"
inside systemctl daemon-reload
inside systemctl stop edgecased
inside edgecase config storage --values /mnt/ssd/edgecase --move >"$scratch/storage.log" 2>&1 ||
  { cat "$scratch/storage.log" >&2; fail "config storage --move"; }
inside systemctl start edgecased
expect_value kitchen/temperature 22.5
edgecase_as visitor write kitchen/temperature 23.5
[ -n "$(inside ls -A /mnt/ssd/edgecase)" ] || fail "nothing on the values drive"

step "the values drive comes after the service: the process that runs sees it within its sandbox"
inside mkdir -p /mnt/kept
inside mount --bind /mnt/ssd /mnt/kept
inside systemctl stop edgecased
inside umount /mnt/ssd
inside systemctl start edgecased
main=$(property MainPID)
case $(values_state) in *mounted*) ;; *) fail "without its drive: '$(values_state)'" ;; esac
until_true status_says 'the values drive takes no writes: .*/mnt/ssd/edgecase.*to do: mount it'
edgecase_as visitor write kitchen/temperature 24.5
[ -z "$(inside ls -A /mnt/ssd)" ] || fail "something was written below the mount point"
inside mount --bind /mnt/kept /mnt/ssd
until_true is_whole
[ "$(property MainPID)" = "$main" ] || fail "another process runs than before the drive came"
expect_value kitchen/temperature 24.5
seq 400000 | sed 's/.*/load,device=drive x=& &/' >"$root/var/tmp/load.line"
before=$(inside find /mnt/kept -type f | wc -l)
edgecase_as visitor import --format line /var/tmp/load.line >/dev/null 2>"$scratch/import.log" ||
  { tail "$scratch/import.log" >&2; fail "import"; }
has_more_files() { [ "$(inside find /mnt/kept -type f | wc -l)" -gt "$before" ]; }
until_true has_more_files
inside umount /mnt/kept

step "no memory: it ends, and is started again with all that was acknowledged"
inside systemctl restart edgecased
main=$(property MainPID)
held=$(inside sed -n 's/^VmData:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$main/status")
inside prlimit --pid "$main" --data=$((held * 1024))
edgecase_as visitor import --format line /var/tmp/load.line >/dev/null 2>&1 || true
until_true is_another "$main"
expect_value kitchen/temperature 24.5
rm "$root/var/tmp/load.line"

step "upgrade from an older version: configuration and readings stay, the new process serves under the new unit"
main=$(property MainPID)
version() { inside dpkg-query --show --showformat='${Version}' edgecase; }
[ "$(version)" = 0.0.1 ] || fail "the older version is not the one that runs"
install_package /edgecase.deb
until_true is_another "$main"
[ "$(version)" = "$(dpkg-deb --field "$package" Version)" ] || fail "version $(version)"
inside grep -q '^Max core file size *0 *0 ' "/proc/$(property MainPID)/limits" || fail "may dump its memory"
inside systemd-analyze security --threshold=12 edgecased >/dev/null || fail "exposed by more than 1.2"
inside test -e /etc/edgecase/edgecase.toml.dpkg-dist || fail "the new sample is not beside the configuration"
inside grep -q /mnt/ssd/edgecase /etc/edgecase/edgecase.toml || fail "the configuration was replaced"
expect_value kitchen/temperature 24.5

step "remove: the store stays"
inside dpkg --remove edgecase >/dev/null 2>&1
if inside systemctl --quiet is-active edgecased; then fail "still active"; fi
inside test -e /var/lib/edgecase/IDENTITY || fail "the store is gone"

step "install again: the readings are back"
install_package /edgecase.deb
until_true is_active
expect_value kitchen/temperature 24.5

step "purge: nothing of ours stays but what is mounted"
inside mkdir -p /var/lib/edgecase/mounted
inside mount -t tmpfs drive /var/lib/edgecase/mounted
inside touch /var/lib/edgecase/mounted/precious
inside dpkg --purge edgecase >/dev/null 2>&1
inside test -e /var/lib/edgecase/mounted/precious || fail "a mounted drive was touched"
[ -n "$(inside ls -A /mnt/ssd/edgecase)" ] || fail "the values drive was touched"
inside test ! -e /var/lib/edgecase/IDENTITY || fail "the store is still there"
inside test ! -e /etc/edgecase || fail "the configuration is still there"

step "without dpkg: the archive's install.sh installs, and upgrades"
rm -rf "$root/archive"
dpkg-deb --extract "$package" "$root/archive"  # holds what release.sh puts into an archive
cp "$top/packaging/install.sh" "$root/archive"
uname -m >"$root/archive/made-for"
inside /archive/install.sh
until_true is_active
[ "$(inside systemctl is-enabled edgecased)" = enabled ] || fail "not enabled"
edgecase_as visitor write kitchen/temperature 25.5
main=$(property MainPID)
inside sh -c 'echo "# of mine" >>/etc/edgecase/edgecase.toml'
inside /archive/install.sh
until_true is_another "$main"
inside grep -q '^# of mine$' /etc/edgecase/edgecase.toml || fail "the configuration was replaced"
expect_value kitchen/temperature 25.5
inside systemctl disable --now edgecased 2>/dev/null
inside sh -c 'cd /archive && find . -mindepth 2 ! -type d | sed "s/^.//" | xargs rm && rm -r /etc/edgecase /archive'
