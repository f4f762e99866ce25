#!/usr/bin/env bash
# Tries a package of a release on the systems that boards have: makes a bare root of each, installs the package there
# as its user would, starts the daemon, writes a reading, kills it and reads the reading again; then the tour
# (quickstart.sh) with that program. Each root is made once, below build/distributions/. Needs root rights, mmdebstrap
# and the distributions' servers.
#
#   packaging/other-distributions.sh [--build] PACKAGE [SYSTEM...]
#
#   PACKAGE   a portable edgecase_*.deb, or an archive of a release (.tar.gz)
#   SYSTEM    bullseye bookworm trixie (Debian 11, 12, 13), noble (Ubuntu 24.04); otherwise all of them
#   --build   also runs packaging/quickstart.sh and tests/run.sh of this tree in each, which takes long; not bullseye
#
# Exit codes: 0 all worked, 1 something failed, 2 wrong usage, 77 no such root can be had here
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
wrong() { echo "$0: $1; see --help" >&2; exit 2; }
build=no
if [ "${1:-}" = --help ] || [ "${1:-}" = -h ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 0
fi
[ "${1:-}" != --build ] || { build=yes; shift; }
[ $# -gt 0 ] || wrong "which package?"
package=$(realpath -e "$1") || wrong "no file $1"
[[ $package = *.deb || $package = *.tar.gz ]] || wrong "$1 is neither a package nor an archive"
shift
[ $# -gt 0 ] || set -- bullseye bookworm trixie noble
for system in "$@"; do
  [[ $system =~ ^(bullseye|bookworm|trixie|noble)$ ]] || wrong "no system $system"
done
[ "$(id -u)" -eq 0 ] || { echo "a bare root needs root rights"; exit 77; }
command -v mmdebstrap >/dev/null || { echo "mmdebstrap is not installed"; exit 77; }

# What Ubuntu's servers are known by, which Debian does not package.
readonly ubuntu=http://archive.ubuntu.com/ubuntu
readonly ubuntu_keys=pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb
readonly ubuntu_keys_sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8

# A bare root of `system`; fails where none can be had.
make_root() {
  local system=$1 place=$2 root=$2/root mirror=
  local options=(--quiet --variant=minbase --include=apt)
  if [ "$system" = noble ]; then
    curl --silent --show-error --fail --max-time 60 --output "$place/keys.deb" "$ubuntu/$ubuntu_keys" || return 1
    echo "$ubuntu_keys_sum  $place/keys.deb" | sha256sum --check --quiet || return 1
    dpkg-deb --extract "$place/keys.deb" "$place/keys"
    options+=(--components=main,universe "--keyring=$place/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg")
    mirror=$ubuntu
  else
    # From where this machine has its own packages.
    mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
      awk '$2 == "Debian" { print $1; exit }')
  fi
  find "$root" -xdev -mindepth 1 -delete
  mmdebstrap "${options[@]}" "$system" "$root" ${mirror:+"$mirror"} || return 1
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  printf '127.0.0.1 localhost\n::1 localhost\n' >"$root/etc/hosts"
  touch "$place/complete"
}

# A command in a root, with this tree as /src; what is mounted and started goes with the command.
inside() {
  local root=$1 output=$2
  shift 2
  unshare --mount --pid --fork --kill-child --propagation private bash -c '
    root=$1 top=$2 output=$3
    shift 3
    mkdir -p "$root/src"
    mount --bind "$root" "$root" && mount -t proc proc "$root/proc" &&
      mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
      mount --bind "$top" "$root/src" && mount --bind "$output" "$root/src/build" || exit 77
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
      DEBIAN_FRONTEND=noninteractive "$@"
  ' bash "$root" "$top" "$output" "$@"
}

readonly install_deb='apt-get -qq update && apt-get -qq install --yes --no-install-recommends "$0"'
readonly install_archive='rm -rf /tmp/archive && mkdir /tmp/archive &&
  tar -xzf "$0" -C /tmp/archive --strip-components=1 && /tmp/archive/install.sh --no-start'
readonly first_reading='
set -eu
mkdir -p /run/edgecase
serve() { edgecase serve >>/tmp/daemon.log 2>&1 & daemon=$!; for i in $(seq 300); do
  edgecase status --health >/dev/null 2>&1 && return; sleep 0.1; done; cat /tmp/daemon.log >&2; exit 1; }
rm -rf /tmp/daemon.log /var/lib/edgecase/*
serve
edgecase write kitchen/temp 21.5
kill -9 $daemon
wait $daemon || true
serve
edgecase last kitchen --format csv | grep -q ",21.5,"
kill $daemon
wait $daemon'
readonly tour='apt-get -qq update && apt-get -qq install --yes --no-install-recommends mosquitto-clients &&
  /src/packaging/quickstart.sh --program /usr/bin/edgecase --no-install --rounds 2'

failed=no
tried=no
for system in "$@"; do
  place=$top/build/distributions/$system
  mkdir -p "$place/root" "$place/build"
  if [ ! -e "$place/complete" ] && ! make_root "$system" "$place"; then
    echo "$system: no root to be had"
    continue
  fi
  tried=yes
  cp "$package" "$place/root/tmp/"
  file=/tmp/$(basename "$package")
  install=$install_deb
  [[ $file = *.deb ]] || install=$install_archive
  name=$(sed -n 's/^PRETTY_NAME="\(.*\)"/\1/p' "$place/root/etc/os-release")
  begun=$SECONDS
  said=ok
  inside "$place/root" "$place/build" bash -c "$install" "$file" >"$place/log" 2>&1 || said="cannot be installed"
  [ "$said" != ok ] || inside "$place/root" "$place/build" bash -c "$first_reading" >>"$place/log" 2>&1 ||
    said="no first reading"
  took=$((SECONDS - begun))
  [ "$said" != ok ] || inside "$place/root" "$place/build" bash -c "$tour" >>"$place/log" 2>&1 ||
    said="quickstart.sh fails"
  if [ "$said" = ok ] && [ $build = yes ] && [ "$system" != bullseye ]; then
    inside "$place/root" "$place/build" bash -c '/src/packaging/quickstart.sh && /src/tests/run.sh' \
      >>"$place/log" 2>&1 || said="the build or its tests fail"
  fi
  if [ "$said" = ok ]; then
    echo "$system ($name): installed, a reading in and out again in $took s; the tour goes through"
  else
    failed=yes
    echo "$system ($name): $said"
    tail -n 5 "$place/log"
  fi
done
[ $tried = yes ] || exit 77
[ $failed = no ]
