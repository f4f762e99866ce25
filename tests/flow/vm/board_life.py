"""Installs a board, writes to it in every way, cuts its power under load, pulls its values drive and puts it back."""
import sys

from powercut import arguments_of, go_through

ENOUGH = 20  # messages and batches


def pull_and_plug(board, traffic):
    """The values drive goes and comes back while readings arrive. What was refused meanwhile was refused with words."""
    from machine import until

    def degraded():
        return board.status().get("drives", {}).get("values", {}).get("degraded")

    def process():
        return board.machine.ssh("systemctl show --property=MainPID edgecased").stdout.strip()

    def more_acknowledged(than):
        return traffic.acknowledged() >= than + ENOUGH

    print("-- the values drive is pulled", flush=True)
    board.machine.wait_for_ssh()
    one = process()
    board.machine.pull("values")
    reason = until(degraded, "degraded", 120)
    before = traffic.acknowledged()
    print(f"-- degraded: {reason}", flush=True)
    until(lambda: more_acknowledged(before), "readings are taken without the values drive", 120)
    print("-- readings are taken without it; it is put back", flush=True)
    board.machine.plug("values")
    until(lambda: not degraded(), "healthy again", 180)
    before = traffic.acknowledged()
    traffic.allow_more()
    until(lambda: more_acknowledged(before), "readings are taken", 120)
    if process() != one:
        raise AssertionError("another process runs than before the drive was pulled")
    print("-- healthy by itself, in the same process", flush=True)


def main():
    parser = arguments_of("board.sh", __doc__)
    return go_through(parser.parse_args(), parser, ["gate", "http", "listener"], at_first=pull_and_plug)


if __name__ == "__main__":
    sys.exit(main())
