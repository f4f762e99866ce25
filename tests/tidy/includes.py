"""Who may include whom: the walls of engine/README.md and daemon/README.md as tables."""
import re

# What a folder of the engine may include beside itself and the face.
_BELOW_BUFFER = ["base", "file", "crypto", "log"]
ENGINE = {
    "base": [],
    "crypto": ["base", "file"],
    "expiry": ["base"],
    "feed": ["base"],
    "file": ["base"],
    "log": ["base", "file", "crypto"],
    "buffer": _BELOW_BUFFER,
    "metadata": _BELOW_BUFFER,
    "value": _BELOW_BUFFER,
    "table": _BELOW_BUFFER + ["expiry", "feed", "buffer", "metadata", "value"],
    "version": _BELOW_BUFFER + ["expiry", "feed", "buffer", "metadata", "value", "table"],
    "compaction": _BELOW_BUFFER + ["expiry", "feed", "buffer", "metadata", "value", "table", "version"],
    "scrub": _BELOW_BUFFER + ["metadata", "value", "table", "version"],
    "core": _BELOW_BUFFER
    + ["expiry", "feed", "buffer", "metadata", "value", "table", "version", "compaction", "scrub"],
    "check": _BELOW_BUFFER
    + ["expiry", "feed", "buffer", "metadata", "value", "table", "version", "core"],
}

# The same for the daemon; every folder sees the face.
_SERVICES = ["wire", "auth", "catalog", "observe", "audit"]
DAEMON = {
    "wire": [],
    "columnar": ["wire"],
    "config": ["wire"],
    "observe": ["wire"],
    "auth": ["wire"],
    "audit": ["wire", "auth", "observe"],
    "catalog": ["wire"],
    "retention": ["wire", "catalog"],
    "erase": _SERVICES + ["retention"],
    "ingest": _SERVICES + ["retention", "erase"],
    "query": _SERVICES + ["retention"],
    "influxql": _SERVICES + ["retention", "query"],
    "tiers": _SERVICES + ["retention", "erase", "query"],
    "report": ["wire", "auth", "config", "catalog", "retention", "erase", "query"],
    "net": ["wire", "auth"],
    "sign": ["wire", "auth"],
    "tls": ["net"],
    "forward": _SERVICES + ["config", "net", "sign", "tls", "erase", "retention", "ingest", "query"],
    "http": _SERVICES + ["columnar", "config", "net", "forward", "retention", "erase", "ingest", "influxql", "query",
                         "report", "sign", "tiers"],
    "mqtt": _SERVICES + ["config", "tls", "net", "erase", "ingest"],
    "app": _SERVICES + ["config", "forward", "tls", "net", "retention", "erase", "ingest", "query", "tiers", "http",
                        "mqtt", "sign"],
}

# The CLI sees wire, the table of settings (flags of `serve`, `config show`), and of the rest of the
# daemon only the door to it.
CLI_DAEMON_FOLDERS = ["wire", "config"]
# With net/ and tls/ the command line connects to a daemon through the daemon's own TLS.
CLI_DAEMON_HEADERS = ["app/serve.h", "app/store_faults.h", "net/channel.h",
                      "tls/tls_ends.h", "sign/signature.h"]

# Third-party headers and the places that may name them.
THIRD_PARTY = {
    r"nlohmann/.*": ["daemon/", "cli/", "tests/"],
    r"toml\+\+/.*|toml\.hpp": ["daemon/config/"],
    r"CLI/.*": ["cli/", "tests/cli/"],
    r"httplib\.h": ["cli/daemon_client", "tests/"],
    r"zlib\.h": ["daemon/http/", "daemon/wire/", "cli/backup/", "cli/import/", "cli/plot/",
                 "tests/cli/plot/", "tests/daemon/http/"],
    r"zstd(_errors)?\.h": ["daemon/http/", "daemon/wire/", "tests/daemon/", "tests/fuzz/"],
    r"MQTT\w+\.h": ["daemon/mqtt/", "cli/bench/", "tests/daemon/mqtt/"],
    r"mbedtls/.*|psa/.*": ["engine/crypto/", "daemon/sign/", "daemon/tls/", "tests/support/test_certificate",
                           "tests/engine/crypto/", "tests/daemon/tls/"],
    r"re2/.*": ["daemon/influxql/"],
    r"lz4\.h": ["engine/value/"],
    r"nettle/.*": ["engine/crypto/", "daemon/auth/"],
    r"(leveldb|rocksdb)/.*": ["tests/bench/peers/"],
    r"doctest/.*": ["tests/"],
}

# Calls to the operating system; those on files are engine/file's alone within the engine.
POSIX_FILES = r"(fcntl|unistd|dirent|sys/(stat|statvfs|mman|uio|file|sendfile|vfs))\.h"
POSIX = (
    r"(fcntl|unistd|dirent|pthread|sched|signal|poll|time|netdb|pwd|grp|termios|getopt|malloc|cpuid"
    r"|nmmintrin|immintrin|arm_acle|arm_neon|netinet/\w+|arpa/inet|link|sys/\w+|asm/\w+|linux/\w+)\.h"
)
STANDARD = r"[a-z0-9_]+"

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def folder_of(path, top):
    """The folder of `top/folder/file`; "" for a file right in `top`."""
    parts = path.split("/")
    return parts[1] if parts[0] == top and len(parts) > 2 else ""


def included(text):
    """Yields (line number, is a system include, name)."""
    for number, line in enumerate(text.splitlines(), 1):
        match = _INCLUDE.match(line)
        if match:
            yield number, match.group(1) == "<", match.group(2)


def resolve(path, name, files):
    """The file of the tree that a quoted include means; None when there is none."""
    here = path.rsplit("/", 1)[0]
    places = ["engine/include", "engine", "daemon", "cli", "tests", here]
    top = path.split("/")[0]
    places.sort(key=lambda place: (place != top, place != here))
    for place in places:
        if f"{place}/{name}" in files:
            return f"{place}/{name}"
    return None


def _system_complaint(path, name):
    for pattern, places in THIRD_PARTY.items():
        if re.fullmatch(pattern, name):
            if any(path.startswith(place) for place in places):
                return None
            return f"<{name}> belongs to {', '.join(places)} only"
    if path.startswith("engine/include/") and not re.fullmatch(STANDARD, name):
        return f"<{name}>: the face includes the standard library and itself"
    if re.fullmatch(POSIX_FILES, name):
        if path.startswith("engine/") and not path.startswith("engine/file/"):
            return f"<{name}>: system calls on files are in engine/file only"
        return None
    if re.fullmatch(STANDARD, name) or re.fullmatch(POSIX, name):
        return None
    return f"<{name}> is neither standard, POSIX nor a dependency known to tests/tidy/includes.py"


def _wall_complaint(path, target):
    """What is wrong with `path` including the tree's file `target`; None when nothing."""
    top, target_top = path.split("/")[0], target.split("/")[0]
    face = target.startswith("engine/include/")
    if path.startswith("engine/include/"):
        return None if face else "the face includes the standard library and itself"
    if face:
        return None
    own, other = folder_of(path, top), folder_of(target, target_top)
    if target_top == "tests":
        return None if top == "tests" else "product code does not include tests"
    if top in ("engine", "daemon") and target_top == top:
        table = ENGINE if top == "engine" else DAEMON
        if own not in table:
            return f"tests/tidy/includes.py does not know the folder {top}/{own}"
        if other == own or other in table[own]:
            return None
        return f"{top}/{own} may not include {top}/{other}"
    if top == "cli":
        if target_top == "cli" or target[len("daemon/"):] in CLI_DAEMON_HEADERS:
            return None
        if target_top == "daemon" and other in CLI_DAEMON_FOLDERS:
            return None
        return f"the CLI sees daemon/wire, daemon/config and {', '.join(CLI_DAEMON_HEADERS)}, not {target}"
    if top == "tests":
        allowed = {"engine": ["engine"], "daemon": ["daemon"], "cli": ["cli", "daemon"]}
        if target_top in allowed.get(own, ["engine", "daemon", "cli"]):
            return None
        return f"tests/{own} does not look inside {target_top}/"
    return f"{top}/ may not include {target_top}/"


def complaints(path, text, files):
    """Yields (line, what is wrong) for every include of one source."""
    for number, is_system, name in included(text):
        if is_system:
            what = _system_complaint(path, name)
        else:
            target = resolve(path, name, files)
            what = _wall_complaint(path, target) if target else f'"{name}" is no file of the tree'
        if what:
            yield number, what
