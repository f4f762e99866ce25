"""Installs the package on a board and runs the flow tests there, against the program that it installs.

Not those that fill drives or want what a build makes. A test case that is skipped is told.
"""
import io
import pathlib
import re
import subprocess
import sys
import tarfile
import time

from powercut import HERE, arguments_of, image_for, ready_for

FLOWS = ["start", "readings", "tls", "storage", "encryption", "access", "audit", "backup", "damage", "erase", "group",
         "import", "kill_broker", "kill_http", "kill_listener", "kill_mqtt", "listener", "listener_paho",
         "listener_restart", "repair", "report"]
TOOLS = ["python3", "python3-paho-mqtt", "mosquitto", "mosquitto-clients", "curl", "openssl", "jq"]
TESTS = "/var/tmp/flow"
FLOW_SECONDS = 1800
# An emulated processor is that much slower than what the tests expect.
TIME_LIMIT = 600


def put_tests(machine):
    """The scripts, as they lie here."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(HERE.parent.glob("*.py")):
            archive.add(path, path.name)
    local = pathlib.Path(machine.path) / "tests.tar"
    local.write_bytes(packed.getvalue())
    machine.copy(local, "/var/tmp/tests.tar")
    machine.ssh(f"mkdir -p {TESTS} && tar --extract --no-same-owner --file /var/tmp/tests.tar --directory {TESTS}")


def run_flow(machine, name):
    """Whether it passed; says how."""
    began = time.monotonic()
    done = machine.ssh(f"cd {TESTS} && EDGECASE_PROGRAM=/usr/bin/edgecase EDGECASE_TEST_TIME_LIMIT={TIME_LIMIT} "
                       f"PYTHONDONTWRITEBYTECODE=1 python3 {name}_flow_test.py -v", check=False, seconds=FLOW_SECONDS)
    said = done.stdout + done.stderr
    verdict = "passed" if done.returncode == 0 else f"FAILED ({done.returncode})"
    ran = re.search(r"^Ran (\d+) tests?", said, re.MULTILINE)
    skipped = re.findall(r"\bskipped ['\"](.*)['\"]$", said, re.MULTILINE)
    print(f"{name}: {verdict}, {ran[1] if ran else 'no'} cases in {time.monotonic() - began:.0f} s"
          + "".join(f"; skipped: {reason}" for reason in skipped), flush=True)
    if done.returncode != 0:
        print(said[-6000:], flush=True)
    return done.returncode == 0


def main():
    parser = arguments_of("board_flows.sh", __doc__, cuts=False)
    parser.add_argument("flows", nargs="*", metavar="FLOW", help="of " + " ".join(FLOWS) + "; all")
    arguments = parser.parse_args()
    for name in arguments.flows:
        if not (HERE.parent / f"{name}_flow_test.py").exists():
            parser.error(f"there is no flow test '{name}'")
    ready_for(arguments, parser)
    import board as boards
    image = image_for(arguments, parser, TOOLS)
    board = boards.Board(image, arguments.images)
    failed = []
    try:
        machine = board.machine
        machine.boot()
        machine.wait_for_ssh()
        machine.copy(image.package, "/var/tmp/edgecase.deb")
        machine.ssh("dpkg --install /var/tmp/edgecase.deb")
        board.wait_until_active()
        board.tell_figures()
        machine.ssh("systemctl stop edgecased")
        print(machine.ssh("uname -srm; getconf GNU_LIBC_VERSION; edgecase version").stdout, end="", flush=True)
        put_tests(machine)
        failed = [name for name in arguments.flows or FLOWS if not run_flow(machine, name)]
    except (AssertionError, subprocess.SubprocessError) as error:
        print(f"failed: {error}", flush=True)
        failed.append("the board")
    finally:
        board.remove(keep=arguments.keep)
    print(f"FAILED: {' '.join(failed)}" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
