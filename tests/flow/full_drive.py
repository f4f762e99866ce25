"""A drive that another file fills to its last block, and readings that go on coming meanwhile."""
import hashlib
import os
import threading
import time

from residue import canary

IMAGE_MIB = 160
STORAGE = 'on-full = "reject"\nkeep-free = "0MiB"\nmemory-limit = "32MiB"\nwal-limit = "16MiB"'
KEPT_PART = 16  # with keep-free as it is unless set, of a drive as small as these
RESERVE_MIB = 48      # for erasing, as it is unless set
ROOM_BYTES = 6 << 20  # what the ballast leaves at first
# As long as it takes for waits between two attempts to be the longest.
FULL_SECONDS = 25
TEXT_BYTES = 1 << 10
DEVICES = 4
BATCH = 200  # readings, over all devices
RETRY_SECONDS = 0.05
# A drive counts as full for a writer who is refused so often in a row.
REFUSALS = 5
_SECOND_NS = 1_000_000_000


class Ballast:
    """A file beside those of the store; what it holds, nobody else can."""

    def __init__(self, mount):
        self.path = os.path.join(mount, "ballast")

    def leave(self, bytes_left):
        """Takes everything but so much."""
        space = os.statvfs(os.path.dirname(self.path))
        self._grow(max(space.f_bfree * space.f_frsize - bytes_left, 0), 1 << 20)

    def take_all(self):
        """Until there is no block left, for root neither."""
        for step in (1 << 20, 1 << 16, 1 << 12):
            self._grow(1 << 50, step)

    def _grow(self, bytes_more, step):
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            end = size + bytes_more
            while size < end:
                os.posix_fallocate(descriptor, size, min(step, end - size))
                size += step
        except OSError:
            pass  # full
        finally:
            os.close(descriptor)

    def remove(self):
        """Gives the space back."""
        os.unlink(self.path)


class Readings:
    """Batches of line protocol that follow each other in time, and what of them was acknowledged.

    A batch that was refused is sent again until it is taken: all before `acknowledged` must be
    there, it itself may be.
    """

    def __init__(self, source):
        self.acknowledged = 0  # batches
        self.canaries = [canary(source) for _ in range(DEVICES)]
        self.begin_ns = (int(time.time()) - 10_000_000) * _SECOND_NS
        self.erased = set()

    def name(self, device):
        return f"d{device}"

    def text(self, device, second):
        """Can be told apart from any other, and cannot be compressed much."""
        drawn = hashlib.shake_128(f"{self.canaries[device]}/{second}".encode())
        return self.canaries[device] + drawn.hexdigest((TEXT_BYTES - 32) // 2)

    def _seconds(self, batch):
        each = BATCH // DEVICES
        return range(batch * each, (batch + 1) * each)

    def body(self):
        """The next one."""
        return "".join(f'm,device={self.name(device)} text="{self.text(device, second)}" '
                       f"{self.begin_ns + second * _SECOND_NS}\n"
                       for second in self._seconds(self.acknowledged) for device in self.devices())

    def devices(self):
        """Those that were not erased."""
        return [device for device in range(DEVICES) if device not in self.erased]

    def send(self, write):
        """Whether `write(body)` acknowledged the next batch."""
        taken = write(self.body())
        self.acknowledged += taken
        return taken

    def count(self):
        """Acknowledged readings of a device."""
        return self.acknowledged * BATCH // DEVICES

    def verdict(self, device, stored):
        """(missing, wrong) of what one device has: pairs of time and text."""
        found = dict(stored)
        seconds = range(self.count())
        missing = sum(self.begin_ns + second * _SECOND_NS not in found for second in seconds)
        # The batch that was refused last may be there.
        last = self._seconds(self.acknowledged)[-1]
        wrong = len(stored) - len(found)
        for time_ns, text in found.items():
            second, rest = divmod(time_ns - self.begin_ns, _SECOND_NS)
            wrong += rest != 0 or not 0 <= second <= last or text != self.text(device, second)
        return missing, wrong


def has_reserves(place):
    """Whether the daemon has made what it keeps for erasing, on both drives."""
    paths = [os.path.join(place.path, name, "RESERVE") for name in ("meta", "values")]
    return all(os.path.exists(path) and os.stat(path).st_blocks * 512 >= RESERVE_MIB << 20
               for path in paths)


def fill(readings, ballast, write, batches, limit=2_000):
    """So many batches; then the drive is made full, and batches follow until they are refused."""
    for _ in range(batches):
        if not readings.send(write):
            break
    refused = 0
    for _ in range(limit):
        ballast.take_all()
        refused = 0 if readings.send(write) else refused + 1
        if refused == REFUSALS:
            return
        if refused:
            threading.Event().wait(RETRY_SECONDS)
    raise AssertionError(f"{limit} more batches were taken by a full drive")


def time_to_take(readings, write, limit_seconds):
    """Seconds until a batch was acknowledged; None: none was."""
    began = time.monotonic()
    while not readings.send(write):
        if time.monotonic() - began > limit_seconds:
            return None
        threading.Event().wait(RETRY_SECONDS)
    return time.monotonic() - began


def stay_full(readings, ballast, write, deadline):
    """Tries to write until then; whatever comes free is taken."""
    while time.monotonic() < deadline:
        ballast.take_all()
        time_to_take(readings, write, RETRY_SECONDS)
