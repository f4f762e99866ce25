#!/usr/bin/env bash
# Runs `edgecase bench` on two drives of this machine's own making: two loop devices with ext4 on the
# drive of --dir, the one for values held to a slow external SSD's rate by the kernel (blkio of
# cgroup v1, as root). Everything is gone at the end, also after Ctrl-C: mounts are this command's
# own, and the files beneath have no name.
#
#   tests/bench/two_drives.sh [--edgecase FILE] [--dir DIR] [--size MIB] [--slow-mb N]
#                            [--slow-writes N] [--slow-reads N] [WORKLOAD ARGUMENTS...]
#
#   --edgecase  the executable (default: build/release/cli/edgecase)
#   --dir       where the two files lie (default: .)
#   --size      of each of them (default: 2048)
#   --slow-mb   MB/s that the slow drive reads, and writes (default: 100)
#   --slow-writes, --slow-reads
#               requests a second that it does at most (default: 400, 4000)
#   WORKLOAD    what to run, with its arguments (default: casedb-drives)
#
# Exit codes: those of the bench; 2 wrong usage, 1 where the kernel or the user does not allow it.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
edgecase=$here/../../build/release/cli/edgecase
dir=.
size=2048
slow_mb=100
slow_writes=400
slow_reads=4000
while [ $# -gt 0 ]; do
  case $1 in
    --edgecase) edgecase=$2; shift 2 ;;
    --dir) dir=$2; shift 2 ;;
    --size) size=$2; shift 2 ;;
    --slow-mb) slow_mb=$2; shift 2 ;;
    --slow-writes) slow_writes=$2; shift 2 ;;
    --slow-reads) slow_reads=$2; shift 2 ;;
    --help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) echo "two_drives.sh: unknown argument $1 (see --help)" >&2; exit 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- casedb-drives
fail() {
  echo "two_drives.sh: $*" >&2
  exit "${code:-1}"
}
code=2
[ -x "$edgecase" ] || fail "no executable at $edgecase"
[ -d "$dir" ] || fail "no directory $dir"
for number in "$size" "$slow_mb" "$slow_writes" "$slow_reads"; do
  [[ $number =~ ^[1-9][0-9]{0,6}$ ]] || fail "$number is no number of MiB, MB/s, or requests"
done
code=1
edgecase=$(realpath "$edgecase")
dir=$(realpath "$dir")
[ "$(id -u)" = 0 ] || fail "loop devices need root; casedb-drives without it makes a drive slow by itself"
throttle=/sys/fs/cgroup/blkio
[ -e $throttle/blkio.throttle.write_bps_device ] || fail "the kernel has no blkio.throttle (cgroup v1)"
free_mib=$(($(stat -f -c '%a * %S' "$dir") / 1048576))
[ "$free_mib" -ge $((2 * size + 100)) ] || fail "$dir has $free_mib MiB free, this takes $((2 * size))"
if [ -z "${EDGECASE_TWO_DRIVES:-}" ]; then
  # Mounts of our own: they go with the last process that sees them.
  EDGECASE_TWO_DRIVES=1 exec unshare --mount --propagation private "$0" --edgecase "$edgecase" --dir "$dir" \
    --size "$size" --slow-mb "$slow_mb" --slow-writes "$slow_writes" --slow-reads "$slow_reads" "$@"
fi

work=$(mktemp -d "$dir/edgecase-drives-XXXXXX")
group=$throttle/edgecase-drives-$$
own_group=$throttle$(awk -F: '$2 == "blkio" { print $3 }' /proc/self/cgroup)
bench=
loops=()
cleanup() {
  trap '' INT TERM
  if [ -n "$bench" ]; then wait "$bench" || true; fi
  umount "$work/fast" "$work/slow" 2> /dev/null || true
  local loop
  for loop in "${loops[@]}"; do losetup -d "$loop" 2> /dev/null || true; done
  if [ -d "$group" ]; then
    echo $$ > "$own_group/cgroup.procs" || true
    rmdir "$group" || true
  fi
  rm -rf "$work"
}
trap cleanup EXIT
trap 'if [ -n "$bench" ]; then kill -INT "$bench" 2> /dev/null || true; else exit 1; fi' INT TERM

for drive in fast slow; do
  mkdir "$work/$drive"
  truncate -s "${size}M" "$work/image"
  fallocate -l "${size}M" "$work/image"
  loop=$(losetup --find --show --direct-io=on "$work/image") || fail "no loop device"
  loops+=("$loop")
  rm "$work/image"
  mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0 "$loop"
  mount "$loop" "$work/$drive"
  losetup -d "$loop"  # once nobody mounts it any more
done
mkdir "$group"
device=$(lsblk -no MAJ:MIN "${loops[1]}" | tr -d ' ')
for way in read write; do
  echo "$device $((slow_mb * 1000000))" > "$group/blkio.throttle.${way}_bps_device"
done
echo "$device $slow_writes" > "$group/blkio.throttle.write_iops_device"
echo "$device $slow_reads" > "$group/blkio.throttle.read_iops_device"
echo $$ > "$group/cgroup.procs"

echo "fast: ${loops[0]}, slow: ${loops[1]}, held to $slow_mb MB/s, $slow_writes writes/s, $slow_reads reads/s" >&2
"$edgecase" bench "$@" --metadata "$work/fast" --values "$work/slow" &
bench=$!
result=0
# A signal ends the first wait, not the bench, which ends by itself then.
wait "$bench" || result=$?
if kill -0 "$bench" 2> /dev/null; then
  result=0
  wait "$bench" || result=$?
fi
bench=
exit "$result"
