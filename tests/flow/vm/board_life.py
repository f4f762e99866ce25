"""Installs a board, writes to it in every way, cuts its power under load, pulls its values drive and puts it back.

In the end it starts with a clock that has lost its time.
"""
import sys
import time

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


def start_in_1970(board):
    """The battery of the clock is empty, and nobody tells the time: it serves, trusts no clock, and deletes nothing."""
    from machine import until

    def ok(*arguments):
        done = board.cli(*arguments)
        if done.returncode != 0:
            raise AssertionError(f"{arguments}: {done.stderr}")
        return done.stdout

    machine = board.machine
    machine.ssh("systemctl start edgecased")
    board.wait_until_ready()
    kept = time.time()
    ok("write", "clock/kept", "1", "--time", f"@{kept:.0f}")
    ok("retention", "set", "clock", "1d")
    machine.power_off()
    print("-- it starts with its clock at 1970", flush=True)
    machine.boot("-rtc", "base=1970-01-01T00:00:00")
    board.wait_until_ready()
    clock = board.status()["clock"]
    print(f"-- ready, clock {clock}", flush=True)
    if clock["trusted"] or clock["now"] > time.strftime("%Y-%m-%d", time.gmtime(kept)):
        raise AssertionError(f"the clock was to be wrong, and not trusted: {clock}")
    ok("write", "clock/new", "2")
    # A wrong time is no reason to delete, nor is one that nobody vouches for.
    machine.ssh("date --set=@946684800")
    machine.ssh("systemctl restart edgecased")
    board.wait_until_ready()
    for name in ("kept", "new"):
        if not ok("last", f"clock/{name}", "--format", "ndjson"):
            raise AssertionError(f"clock/{name} is gone")
    machine.ssh(f"date --set=@{time.time():.0f}")
    until(lambda: board.status()["clock"]["trusted"], "the clock is trusted", 60)
    damage = board.check()
    if damage:
        raise AssertionError(f"edgecase check: {damage}")
    print("-- nothing was deleted; with the time it trusts its clock again", flush=True)


def main():
    parser = arguments_of("board.sh", __doc__)
    return go_through(parser.parse_args(), parser, ["gate", "http", "listener"], at_first=pull_and_plug,
                      at_last=start_in_1970)


if __name__ == "__main__":
    sys.exit(main())
