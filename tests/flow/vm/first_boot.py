#!/usr/bin/env python3
"""From power on to the first reading: a card as packaging/recipes/user-data says, in a virtual board.

    tests/flow/vm/first_boot.py PACKAGE        a portable edgecase_*.deb, for arm64 or amd64

The image is Debian 13 with its kernel and cloud-init, made once (minutes; under emulation many) below build/first-boot.
The board gets its packages from Debian's servers. Needs root rights and packaging/install-dependencies.sh vm, for arm64
cross too; CI does not run it.

Seen, each emulated on a busy machine, in seconds from power on:

             cloud-init  mosquitto  package  first reading
    amd64           278        386      442            466
    arm64           186        488      596            646
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from machine import acceleration, until

TOP = pathlib.Path(__file__).resolve().parents[3]
RECIPE = TOP / "packaging/recipes/user-data"
SUITE = "trixie"
PACKAGES = ["systemd-sysv", "systemd-resolved", "systemd-timesyncd", "udev", "dbus", "initramfs-tools", "iproute2",
            "kmod", "e2fsprogs", "procps", "netplan.io", "cloud-init", "ca-certificates"]
BOARDS = {"amd64": (["qemu-system-x86_64", "-machine", "q35"], "ttyS0"),
          "arm64": (["qemu-system-aarch64", "-machine", "virt"], "ttyAMA0")}
ROOT_MIB, BOOT_MIB = 3072, 64
FILES = {
    "etc/fstab": "LABEL=root / ext4 errors=remount-ro 0 1\nLABEL=bootfs /boot/firmware vfat defaults 0 2\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    # As images for the Raspberry Pi have it.
    "etc/cloud/cloud.cfg.d/99-card.cfg": "datasource_list: [NoCloud, None]\n"
                                         "datasource: {NoCloud: {fs_label: bootfs}}\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_net\nvirtio_blk\next4\ncrc32c\n",
    "etc/initramfs-tools/conf.d/small": "MODULES=list\n",
}
BOOT_SECONDS = 3600
STEPS = {"kernel": "Linux version", "cloud-init": "Cloud-init v", "mosquitto is there": "Setting up mosquitto ",
         "edgecase is there": "Setting up edgecase "}
READING = re.compile(r"^.*\bboard\b.*\buptime\b.*$", re.M)


def run(*command, **more):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **more)


def make_image(place, architecture):
    """A root with its kernel; of nothing but Debian's packages."""
    root = place / "root"
    shutil.rmtree(root, ignore_errors=True)
    packages = [*PACKAGES, f"linux-image-cloud-{architecture}"]
    # Python's own compiling is most of the work under emulation.
    left_out = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/bin/py3compile"]
    run("mmdebstrap", "--variant=minbase", f"--architectures={architecture}", "--include=" + ",".join(packages),
        "--aptopt=Acquire::Languages \"none\"", "--dpkgopt=force-unsafe-io",
        *[f"--dpkgopt=path-exclude={each}" for each in left_out], SUITE, str(root),
        env={**os.environ, "INITRD": "No"})
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "boot/firmware").mkdir(exist_ok=True)
    (root / "etc/resolv.conf").unlink(missing_ok=True)
    (root / "etc/resolv.conf").symlink_to("/run/systemd/resolve/stub-resolv.conf")
    run("chroot", str(root), "update-initramfs", "-c", "-k", "all")
    run("chroot", str(root), "systemctl", "enable", "systemd-networkd", "systemd-resolved")
    for name in ("vmlinuz", "initrd.img"):
        found, *_ = (root / "boot").glob(f"{name}-*")
        shutil.copy(found, place / name)
    beside = place / "root.img.new"
    run("mkfs.ext4", "-q", "-F", "-L", "root", "-d", str(root), str(beside), f"{ROOT_MIB}M")
    beside.rename(place / "root.img")
    shutil.rmtree(root)


def make_card(path, package, architecture):
    """The first partition of the card."""
    user_data = RECIPE.read_text(encoding="utf-8").replace("_arm64", f"_{architecture}")
    (path / "user-data").write_text(user_data, encoding="utf-8")
    (path / "meta-data").touch()
    card = path / "card.img"
    with open(card, "wb") as file:
        file.truncate(BOOT_MIB << 20)
    run("mkfs.vfat", "-n", "bootfs", str(card))
    run("mcopy", "-i", str(card), str(path / "user-data"), str(path / "meta-data"), package, "::")
    return card


def boot(place, path, card, architecture):
    shutil.copy(place / "root.img", path)
    drives = [word for each in (path / "root.img", card)
              for word in ("-drive", f"file={each},format=raw,if=virtio,cache=unsafe")]
    machine, console = BOARDS[architecture]
    return subprocess.Popen(
        [*machine, *acceleration(architecture), "-smp", "2", "-m", "1G", "-nodefaults", "-display", "none",
         "-no-reboot", "-serial", f"file:{path / 'console.log'}",
         "-kernel", str(place / "vmlinuz"), "-initrd", str(place / "initrd.img"),
         # A machine that waits for its turn has a timer that comes late, which is no fault of its.
         "-append", f"root=/dev/vda rw console={console} net.ifnames=0 no_timer_check",
         "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=", "-device", "virtio-rng-pci",
         *drives], stdin=subprocess.DEVNULL)


def main():
    named = re.search(r"_(arm64|amd64)\.deb$", sys.argv[-1])
    if len(sys.argv) != 2 or not named:
        sys.exit(__doc__)
    place = TOP / "build/first-boot" / named[1]
    place.mkdir(parents=True, exist_ok=True)
    if not (place / "root.img").exists():
        make_image(place, named[1])
    with tempfile.TemporaryDirectory(dir=place) as scratch:
        path = pathlib.Path(scratch)
        card = make_card(path, sys.argv[1], named[1])
        console = path / "console.log"
        machine = boot(place, path, card, named[1])
        began = time.monotonic()
        told = set()

        def said():
            text = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
            for what, sign in STEPS.items():
                if sign in text and what not in told:
                    told.add(what)
                    print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)
            return READING.search(text) or machine.poll() is not None and "off"

        try:
            found = until(said, "a first reading", BOOT_SECONDS)
        except AssertionError:
            found = "never"
        finally:
            machine.kill()
            machine.wait()
            shutil.copy(console, place)
        if isinstance(found, str):
            sys.exit(f"{found}; what the board said is in {place}/console.log")
        print(f"{time.monotonic() - began:6.0f} s  {found[0].strip()}")


if __name__ == "__main__":
    main()
