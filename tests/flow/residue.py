"""Looks for what was erased: in files, and in the raw bytes of an image that a file system lies in."""
import base64
import os
import random
import shutil
import subprocess
import tempfile

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_PIECE_BYTES = 1 << 24
_QUARTER_BYTES = 8  # of a canary


def canary(source):
    """32 characters that nothing else holds; they fit into names, topics and texts."""
    return "".join(source.choice(_ALPHABET) for _ in range(32))


def seeded():
    """A source of canaries; its seed is printed, and taken from EDGECASE_TEST_SEED."""
    seed = int(os.environ.get("EDGECASE_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"seed: EDGECASE_TEST_SEED={seed}")
    return random.Random(seed)


def forms(text):
    """As it could have been written: itself, in hexadecimal, in base64 at each of its three offsets. Of a
    canary also each quarter: what is compressed has those as they are that nothing before is like."""
    raw = text.encode()
    found = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    if len(raw) >= 4 * _QUARTER_BYTES:
        found.update(raw[at:at + _QUARTER_BYTES] for at in range(0, 4 * _QUARTER_BYTES, _QUARTER_BYTES))
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + raw)
        # Without the characters that depend on the neighbours.
        found.add(coded[4 if offset else 0:-4])
    return found


def _hits_in(path, wanted):
    longest = max(len(form) for form in wanted)
    hits, kept = set(), b""
    with open(path, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            text = kept + piece
            hits.update(form for form in wanted if form in text)
            kept = text[-longest:]
    return hits


def search(paths, canaries):
    """(path, canary) of each that is found in a file, or in any file below a directory."""
    wanted = {form: each for each in canaries for form in forms(each)}
    found = set()
    for path in paths:
        files = [path]
        if os.path.isdir(path):
            files = [os.path.join(folder, name) for folder, _, names in os.walk(path)
                     for name in names]
            found.update((file, each) for file in files for each in canaries if each in file)
        for file in files:
            try:
                found.update((file, wanted[form]) for form in _hits_in(file, wanted))
            except FileNotFoundError:
                pass  # it went meanwhile
    return found


class Image:
    """A file system in a file, mounted, ext4 unless said otherwise. `reason` says why there is none."""

    def __init__(self, megabytes=192, make=("mkfs.ext4", "-q", "-F"), tune=(), options=""):
        self.path = tempfile.mkdtemp(prefix="ec-image-")
        self.image = os.path.join(self.path, "image")
        self.mount = os.path.join(self.path, "mount")
        self.options = options  # of the mount
        self.reason = self._make(megabytes, make, tune)

    def _make(self, megabytes, make, tune):
        os.mkdir(self.mount)
        if os.geteuid() != 0:
            return "only root can mount an image"
        if not shutil.which(make[0]):
            return f"there is no {make[0]}"
        with open(self.image, "wb") as file:
            file.truncate(megabytes << 20)
        commands = [[*make, self.image]]
        if tune:
            commands.append([*tune, self.image])
        for command in commands:
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                return f"{command[0]}: {made.stderr.strip()}"
        return self.mount_again()

    def mount_again(self):
        """Why it cannot be."""
        mounted = subprocess.run(["mount", "-o", ",".join(filter(None, ("loop", self.options))), self.image,
                                  self.mount], capture_output=True, text=True, check=False)
        return f"mount: {mounted.stderr.strip()}" if mounted.returncode != 0 else ""

    def hold(self, place, *names):
        """Directories of the place's store lie on it: `names`, or both."""
        for name in names or ("meta", "values"):
            os.mkdir(os.path.join(self.mount, name), 0o750)
            os.symlink(os.path.join(self.mount, name), os.path.join(place.path, name))

    def settle(self):
        """What the file system holds back reaches the image."""
        descriptor = os.open(self.mount, os.O_RDONLY)
        try:
            subprocess.run(["sync", "-f", self.mount], check=True)
        finally:
            os.close(descriptor)

    def remove(self):
        subprocess.run(["umount", self.mount], capture_output=True, check=False)
        shutil.rmtree(self.path, ignore_errors=True)
