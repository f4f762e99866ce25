"""A small Debian with systemd on a disk image: made once for each release and architecture, kept in the build tree."""
import hashlib
import os
import pathlib
import re
import shutil
import subprocess

SUITES = {"amd64": "bookworm", "arm64": "bullseye"}
# Where packages come from; what mmdebstrap takes by itself where nothing is said.
MIRROR = os.environ.get("EDGECASE_DEBIAN_MIRROR")
ROOT_BYTES = 3 << 30
PACKAGES = ["systemd-sysv", "udev", "openssh-server", "initramfs-tools", "iproute2", "kmod",
            "e2fsprogs", "procps", "init-system-helpers"]
# What a start under emulation need not wait for.
UNWANTED = ["apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer",
            "e2scrub_reap.service", "fstrim.timer", "getty.target", "systemd-timesyncd.service",
            "systemd-pstore.service", "systemd-random-seed.service", "systemd-networkd.service",
            "systemd-network-generator.service", "modprobe@fuse.service", "modprobe@dm_mod.service",
            "modprobe@loop.service", "modprobe@configfs.service", "modprobe@drm.service",
            "modprobe@efi_pstore.service", "dev-hugepages.mount", "dev-mqueue.mount",
            "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount",
            "sys-fs-fuse-connections.mount", "systemd-binfmt.service", "systemd-modules-load.service",
            "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
            "systemd-logind.service", "systemd-user-sessions.service", "systemd-sysusers.service",
            "remote-fs.target", "kmod-static-nodes.service", "systemd-machine-id-commit.service"]
FILES = {
    "etc/hostname": "board\n",
    "etc/hosts": "127.0.0.1 localhost board\n",
    "etc/fstab": "/dev/disk/by-label/root / ext4 errors=remount-ro 0 1\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_net\nvirtio_blk\nvirtio_scsi\nsd_mod\next4\ncrc32c\n",
    "etc/initramfs-tools/conf.d/small": "MODULES=list\n",
    "etc/ssh/sshd_config.d/board.conf": "UseDNS no\nUsePAM no\nPermitRootLogin prohibit-password\n",
    "etc/systemd/system/address.service":
        "[Unit]\nBefore=network.target ssh.service\n"
        "[Service]\nType=oneshot\nExecStart=/bin/sh -c 'ip link set lo up; "
        "for each in /sys/class/net/e*; do card=$${each##*/}; ip link set $$card up; "
        "ip address add 10.0.2.15/24 dev $$card; ip route add default via 10.0.2.2; done'\n"
        "[Install]\nWantedBy=multi-user.target\n",
    "etc/systemd/journald.conf.d/board.conf": "[Journal]\nStorage=persistent\n",
}
_FINISH = """set -e
systemctl enable address ssh
systemctl set-default multi-user.target
systemctl mask %s
rm -f /etc/ssh/ssh_host_rsa_key* /etc/ssh/ssh_host_ecdsa_key*
update-initramfs -c -k all
""" % " ".join(UNWANTED)


def _run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          stdin=subprocess.DEVNULL, check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))[:200]}: {done.stdout[-2000:]}")
    return done.stdout


def depends_of(package):
    """The names of the packages it depends on, and its architecture."""
    field = _run("dpkg-deb", "--field", package, "Depends")
    names = [re.match(r"[a-z0-9.+-]+", each.strip())[0] for each in field.split(",") if each.strip()]
    return names, _run("dpkg-deb", "--field", package, "Architecture").strip()


def _must_run(architecture):
    """Says so where programs of that architecture do not run here: they make their own image."""
    if shutil.which("arch-test") and subprocess.run(["arch-test", architecture], check=False,
                                                    stdout=subprocess.DEVNULL).returncode == 0:
        return
    raise AssertionError(
        f"programs for {architecture} do not run: packaging/install-dependencies.sh vm cross; in a container too:\n"
        "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc\n"
        "cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register")


class Image:
    """The files to boot: root, kernel, initrd, and the key that opens it."""

    def __init__(self, builds, package, suite=None, tools=()):
        """`tools`: packages that it shall have besides."""
        self.package = package
        more, self.architecture = depends_of(package)
        suite = suite or SUITES[self.architecture]
        packages = [*PACKAGES, f"linux-image-{self.architecture}", *more, *tools]
        recipe = repr((suite, sorted(packages), sorted(FILES.items()), _FINISH, ROOT_BYTES))
        name = f"{suite}-{self.architecture}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
        self.path = pathlib.Path(builds) / name
        if not self.path.exists():
            print(f"making {self.path}, which takes minutes and is done once", flush=True)
            beside = self.path.with_name(f"{name}.{os.getpid()}")
            try:
                self._make(beside, suite, packages)
                beside.rename(self.path)
            finally:
                shutil.rmtree(beside, ignore_errors=True)

    def _make(self, beside, suite, packages):
        _must_run(self.architecture)
        beside.mkdir(parents=True)
        root = beside / "root"
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(beside / "key"))
        # The release alone: mirrors drop what came after it when it grows old.
        only_release = f'sed -i "/ {suite} /!d" "$1/etc/apt/sources.list"'
        _run("mmdebstrap", "--variant=minbase", f"--architectures={self.architecture}",
             f"--setup-hook={only_release}",
             "--include=" + ",".join(packages), "--aptopt=Acquire::Languages \"none\"",
             *[f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale")],
             suite, str(root), *([MIRROR] if MIRROR else []), env={**os.environ, "INITRD": "No"})
        for path, text in FILES.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
        home = root / "root/.ssh"
        home.mkdir(mode=0o700, exist_ok=True)
        shutil.copy(beside / "key.pub", home / "authorized_keys")
        _run("chroot", str(root), "sh", "-c", _FINISH)
        for name in ("vmlinuz", "initrd.img"):
            found, = (root / "boot").glob(f"{name}-*")
            shutil.move(found, beside / name)
        _run("mkfs.ext4", "-q", "-L", "root", "-d", str(root), str(beside / "root.img"),
             str(ROOT_BYTES >> 20) + "M")
        shutil.rmtree(root)
