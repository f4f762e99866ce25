#!/usr/bin/env bash
# Compiles EdgeCase on another release of Debian, with that one's compiler and libraries, and runs the tests of what
# uses them there: in a root of its own under build/, which is made once. This tree is seen in it, and changed nowhere
# but in that folder. Needs root rights and mmdebstrap.
#
#   tests/other_debian.sh SUITE [--build-only]
#
#   SUITE          trixie: Debian 13
#   --build-only   run no test
#
# Exit codes: 0 all passed, 1 something failed, 2 wrong usage, 77 no such root can be had here
set -euo pipefail

top=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 0 ? 2 : 0))
fi
suite=$1
run=yes
[ "${2:-}" != --build-only ] || run=no
[[ $suite =~ ^[a-z]+$ ]] || { echo "$0: '$suite' is no name of a release; see --help" >&2; exit 2; }
skip() { echo "$1"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip "a root of another Debian needs root rights"
root=$top/build/$suite/root
output=$top/build/$suite/build
mkdir -p "$root" "$output"

# Two at once would each find half a root.
exec 9>"$top/build/$suite/lock"
flock 9

# A command inside, with this tree as /src; what is mounted goes with the command.
inside() {
  unshare --mount --propagation private bash -c '
    root=$1 top=$2 output=$3
    shift 3
    mkdir -p "$root/src"
    mount --bind "$root" "$root" || exit 77
    mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" &&
      mount --bind "$top" "$root/src" && mount --bind "$output" "$root/src/build" || exit 77
    exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 "$@"
  ' bash "$root" "$top" "$output" "$@"
}

if [ ! -e "$root/../complete" ]; then
  command -v mmdebstrap >/dev/null || skip "mmdebstrap is not installed"
  # From where this machine has its own packages.
  mirror=$(apt-get indextargets --format '$(REPO_URI) $(LABEL)' 'Created-By: Packages' |
    awk '$2 == "Debian" { print $1; exit }')
  find "$root" -xdev -mindepth 1 -delete
  mmdebstrap --quiet --variant=minbase --components=main "$suite" "$root" ${mirror:+"$mirror"} ||
    skip "no $suite to be had"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  touch "$root/../complete"
fi
inside /src/packaging/install-dependencies.sh build || skip "the packages of the build are not to be had for $suite"

# Not optimized, by folders: it is about what compiles and how it behaves, not how fast it is.
inside bash -euc '
  cd /src
  cmake --preset release --log-level=WARNING -DEDGECASE_FOLDERS_AT_ONCE=ON -DCMAKE_CXX_FLAGS_RELEASE=-O0 \
    -DEDGECASE_WARNINGS_AS_ERRORS=ON -DEDGECASE_PLANTED_BUGS=OFF
  cmake --build --preset release --parallel "$(nproc)" --target edgecase daemon_tests
  build/release/cli/edgecase version'
[ $run = yes ] || exit 0
inside /src/build/release/tests/daemon_tests --source-file='*/daemon/tls/*,*/daemon/http/*,*/daemon/net/*'
