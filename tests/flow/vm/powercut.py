"""Cuts the power of a virtual board while readings arrive, and judges what came back."""
import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[2]
TOOLS = ["nbdkit", "mmdebstrap", "ssh", "mkfs.ext4", "mosquitto"]
QEMU = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
SKIPPED = 77


def arguments_of(name, description, cuts=True):
    """What all scripts understand."""
    parser = argparse.ArgumentParser(prog=name, description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog=("EDGECASE_TEST_SEED replays the moments of the cuts.\n" if cuts else "")
                                     + "Exit codes: 0 passed, 1 failed, 2 wrong usage, 77 skipped")
    if cuts:
        parser.add_argument("--cuts", type=int, default=10, metavar="N", help="how often (10)")
    parser.add_argument("--architecture", choices=sorted(QEMU), default="amd64", help="of the board (amd64)")
    parser.add_argument("--package", metavar="FILE",
                        help="the .deb to install; otherwise packaging/build-deb.sh makes it")
    parser.add_argument("--suite", metavar="NAME",
                        help="the release of Debian (bookworm; for arm64 bullseye, whose glibc is 2.31)")
    parser.add_argument("--images", metavar="DIR", default=str(TOP / "build" / "vm"),
                        help="where images are kept and used (build/vm)")
    parser.add_argument("--keep", action="store_true", help="keep the drives of this run")
    return parser


def ready_for(arguments, parser):
    """Leaves where something is missing; afterwards the tests that kill can be imported."""
    cuts = getattr(arguments, "cuts", 1)
    if cuts < 1:
        parser.error("--cuts: at least one")
    for tool in [*TOOLS, QEMU[arguments.architecture]]:
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            print(f"skipped: needs {tool}: packaging/install-dependencies.sh vm tests")
            sys.exit(SKIPPED)
    if os.geteuid() != 0:
        print("skipped: needs root rights to make an image")
        sys.exit(SKIPPED)
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, lambda *_: sys.exit(1))  # by way of what switches the machine off
    os.environ["EDGECASE_FLOW_KILLS"] = str(cuts)
    os.environ["EDGECASE_TEST_TIME_LIMIT"] = "600"
    os.environ.setdefault("EDGECASE_PROGRAM", "edgecase")  # the one in the machine
    sys.path.insert(0, str(HERE.parent))


def image_for(arguments, parser, tools=()):
    """What the machine boots, with these packages besides; leaves where it cannot be made."""
    import image as images
    try:
        image = images.Image(arguments.images, package_for(arguments), arguments.suite, tools)
    except AssertionError as error:
        print(f"failed: {error}")
        sys.exit(1)
    if image.architecture != arguments.architecture:
        parser.error(f"--package: is for {image.architecture}")
    return image


def package_for(arguments):
    """The one given, or the one of this machine."""
    if arguments.package:
        return os.path.realpath(arguments.package)
    native = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True,
                            check=True).stdout.strip()
    if native != arguments.architecture:
        sys.exit(f"--package is needed: what is built here is for {native}")
    made = subprocess.run([TOP / "packaging" / "build-deb.sh", "--no-install"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    if made.returncode != 0:
        sys.exit("packaging/build-deb.sh made no package")
    return str(TOP / made.stdout.split()[-1])


def go_through(arguments, parser, chosen, saves=False, loses=False, at_first=None, at_last=None):
    """Installs, cuts, judges. The exit code.

    `at_first` runs before the first cut, while readings arrive, and `at_last` when all has been judged.
    """
    ready_for(arguments, parser)
    import board as boards
    import ways
    image = image_for(arguments, parser)
    board = boards.Board(image, arguments.images)
    passed = False
    traffic = None
    try:
        rounds = boards.PowerRounds(board)
        traffic = ways.Traffic(chosen, rounds)
        board.install(image.package, traffic.broker_in_guest(), saves)
        if loses:
            for name in ("metadata", "values"):
                board.machine.drives[name].cache = "unsafe"
        traffic.begin()
        first = [at_first] if at_first else []

        def at_each():
            traffic.allow_more()
            if first:
                first.pop()(board, traffic)

        rounds.run(at_each)
        verdict = traffic.verdict()
        rounds.report(verdict)
        damage = board.check()
        print(f"edgecase check: {damage or 'clean'}", flush=True)
        if loses:
            passed = verdict.missing > 0
            print(f"negative control: {'the loss was noticed' if passed else 'NOTHING was noticed'}")
        else:
            passed = verdict.is_clean() and not damage and traffic.is_content()
        if passed and at_last:
            passed = False
            at_last(board)
            passed = True
    except (AssertionError, subprocess.SubprocessError) as error:
        print(f"failed: {error}", flush=True)
        board.tell()
    finally:
        if traffic:
            traffic.remove()
        board.remove(keep=arguments.keep or not passed)
    print("passed" if passed else "FAILED")
    return 0 if passed else 1


def main():
    parser = arguments_of("powercut.sh", __doc__)
    parser.add_argument("--through", choices=["gate", "http", "listener", "all"], default="all",
                        help="the way readings arrive: from a broker, over HTTP, from devices (all at once)")
    parser.add_argument("--negative-control", action="store_true",
                        help="drives that drop what they are told to flush: passes when the loss is noticed")
    parser.add_argument("--boot", action="store_true",
                        help="boot Debian after every cut; otherwise the machine goes on from a saved state in which "
                             "its two drives are not plugged in yet")
    arguments = parser.parse_args()
    chosen = ["gate", "http", "listener"] if arguments.through == "all" else [arguments.through]
    return go_through(arguments, parser, chosen, saves=not arguments.boot, loses=arguments.negative_control)


if __name__ == "__main__":
    sys.exit(main())
