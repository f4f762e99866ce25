#!/usr/bin/env bash
# Makes a container image of a static program: the program, time zones, two volumes, and nothing else. The user is
# 65532, not root. No daemon takes part: layers are tar, and the archive is an OCI layout that `podman load` and
# `docker load` both take. From the same program it is the same, byte for byte.
#
#   packaging/image.sh VERSION ARCHITECTURE PROGRAM OUT.tar
#
#   ARCHITECTURE  amd64 or arm64: what PROGRAM is for; it must be linked statically (toolchains/*-musl)
#   OUT.tar       loaded as edgecase:VERSION and edgecase:latest
#
# Exit codes: 0 made, 1 failed, 2 wrong usage
set -euo pipefail

if [ $# -ne 4 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 1 ? 0 : 2))
fi
version=$1 architecture=$2 program=$(realpath "$3") out=$(realpath -m "$4")
fail() { echo "image.sh: $*" >&2; exit 1; }
case $architecture in
  amd64 | arm64) ;;
  *) echo "image.sh: no architecture is called '$architecture'; amd64 or arm64" >&2; exit 2 ;;
esac
[ -x "$program" ] || fail "$program is no program"
[ -z "$(readelf -d "$program" | grep NEEDED)" ] || fail "$program needs libraries: an image has none"
zones=/usr/share/zoneinfo
[ -e $zones/Europe/Berlin ] || fail "no time zones in $zones: apt-get install tzdata"

top=$(cd "$(dirname "$0")/.." && pwd)
umask 022
export LC_ALL=C TZ=UTC
stamp=${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}
created=$(date -u -d "@$stamp" +%Y-%m-%dT%H:%M:%SZ)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blobs=$work/image/blobs/sha256
mkdir -p "$blobs" "$work/root"

# Moves a file where its digest says; $digest and $size tell of it.
keep() {
  digest=$(sha256sum "$1" | cut -d' ' -f1)
  size=$(stat -c %s "$1")
  mv "$1" "$blobs/$digest"
}
pack() { tar --format=ustar --sort=name --mtime="@$stamp" --numeric-owner "$@"; }

# The zones as this machine has them, without their other spellings.
cd "$work/root"
mkdir -p usr/bin usr/share etc/edgecase tmp run/edgecase var/lib/edgecase srv/edgecase
install -m 755 "$program" usr/bin/edgecase
ln -s edgecase usr/bin/edgecased
cp -rL $zones usr/share/zoneinfo
rm -rf usr/share/zoneinfo/{posix,right,posixrules,localtime,leap*,*.tab,*.zi}
find usr/share/zoneinfo -type f -exec chmod 644 {} +
echo 'root:x:0:0::/:/
edgecase:x:65532:65532::/var/lib/edgecase:/' > etc/passwd
echo 'root:x:0:
edgecase:x:65532:' > etc/group
chmod 1777 tmp
chmod 750 run/edgecase var/lib/edgecase srv/edgecase
pack --owner=0 --group=0 --exclude=./run/edgecase --exclude=./var/lib/edgecase --exclude=./srv/edgecase \
  -cf "$work/layer" .
pack --owner=65532 --group=65532 -rf "$work/layer" ./run/edgecase ./var/lib/edgecase ./srv/edgecase
cd "$work"
diff_id=$(sha256sum layer | cut -d' ' -f1)
gzip -n -9 layer
keep layer.gz
layer=$digest layer_size=$size

# As it starts it serves its own socket and loopback alone: who lets others in says so (compose.yaml).
cat > config <<END
{"created":"$created","architecture":"$architecture","os":"linux",
"config":{"User":"65532:65532","ExposedPorts":{"8650/tcp":{},"1884/tcp":{}},
"Env":["PATH=/usr/bin","EDGECASE_STORAGE_METADATA=/var/lib/edgecase","EDGECASE_STORAGE_VALUES=/srv/edgecase",
"EDGECASE_MQTT_BROKER="],
"Entrypoint":["/usr/bin/edgecase"],"Cmd":["serve"],"StopSignal":"SIGTERM",
"Volumes":{"/var/lib/edgecase":{},"/srv/edgecase":{}},
"Labels":{"org.opencontainers.image.title":"EdgeCase","org.opencontainers.image.version":"$version",
"org.opencontainers.image.licenses":"Apache-2.0"}},
"rootfs":{"type":"layers","diff_ids":["sha256:$diff_id"]},
"history":[{"created":"$created","created_by":"packaging/image.sh"}]}
END
keep config
config=$digest config_size=$size
cat > manifest <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",
"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:$config","size":$config_size},
"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:$layer","size":$layer_size}]}
END
keep manifest
# Both names: podman, too, then finds what compose.yaml asks for.
descriptor() {
  cat <<END
{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:$digest","size":$size,
"platform":{"architecture":"$architecture","os":"linux"},
"annotations":{"org.opencontainers.image.ref.name":"edgecase:$1","io.containerd.image.name":"edgecase:$1"}}
END
}
cat > image/index.json <<END
{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
$(descriptor "$version"),$(descriptor latest)]}
END
echo '{"imageLayoutVersion":"1.0.0"}' > image/oci-layout
# The same for a docker that knows its own archives only.
cat > image/manifest.json <<END
[{"Config":"blobs/sha256/$config","RepoTags":["edgecase:$version","edgecase:latest"],
"Layers":["blobs/sha256/$layer"]}]
END
pack --owner=0 --group=0 -C image -cf archive blobs index.json manifest.json oci-layout
mv "$work/archive" "$out"
echo "$out: edgecase:$version for $architecture, $(($(stat -c %s "$out") / 1000)) kB" >&2
