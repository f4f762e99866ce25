#!/usr/bin/env python3
"""The container image of packaging/image.sh: what is in it. packaging/release.sh starts it, by umoci and runc.

The program is the static one that packaging/release.sh has built, or one that does nothing.
"""
import hashlib
import io
import json
import os
import pathlib
import platform
import shutil
import subprocess
import tarfile
import tempfile
import unittest

from daemon_process import TIME_LIMIT_SECONDS

TOP = pathlib.Path(__file__).resolve().parents[2]
IMAGE = TOP / "packaging/image.sh"
VERSION = "1.2.3"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine())
BUILT = TOP / f"build/{platform.machine()}-musl/cli/edgecase"
LIMIT_BYTES = 10_000_000


def run(*command, **more):
    return subprocess.run([str(each) for each in command], capture_output=True, text=True,
                          timeout=2 * TIME_LIMIT_SECONDS, stdin=subprocess.DEVNULL, check=False, **more)


@unittest.skipUnless(ARCHITECTURE, "skipped: there are no images for this machine")
@unittest.skipUnless(os.path.exists("/usr/share/zoneinfo/Europe/Berlin"), "skipped: no time zones here")
class Image(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(tempfile.mkdtemp(prefix="edgecase-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.directory, True)
        cls.program = BUILT if BUILT.exists() else cls.directory / "nothing"
        if not BUILT.exists() and cls.make_nothing().returncode != 0:
            raise unittest.SkipTest("skipped: no static program can be linked here")
        cls.image = cls.made("image.tar")

    @classmethod
    def make_nothing(cls):
        source = cls.directory / "nothing.c"
        source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
        return run("cc", "-static", "-o", cls.program, source)

    @classmethod
    def made(cls, name):
        out = cls.directory / name
        result = run(IMAGE, VERSION, ARCHITECTURE, cls.program, out,
                     env={**os.environ, "SOURCE_DATE_EPOCH": "1790000000"})
        assert result.returncode == 0, result.stderr
        return out

    def content(self):
        with tarfile.open(self.image) as archive:
            return {each.name: archive.extractfile(each).read() for each in archive.getmembers() if each.isfile()}

    def test_it_is_small_and_the_same_each_time(self):
        self.assertLessEqual(self.image.stat().st_size, LIMIT_BYTES)
        self.assertEqual(self.made("again.tar").read_bytes(), self.image.read_bytes())

    def test_every_blob_is_what_its_name_says(self):
        for name, blob in self.content().items():
            if name.startswith("blobs/"):
                self.assertEqual(name, "blobs/sha256/" + hashlib.sha256(blob).hexdigest())

    def test_podman_and_docker_find_the_version_and_latest(self):
        files = self.content()
        names = [each["annotations"]["org.opencontainers.image.ref.name"]
                 for each in json.loads(files["index.json"])["manifests"]]
        self.assertEqual(names, [f"edgecase:{VERSION}", "edgecase:latest"])
        self.assertEqual(json.loads(files["manifest.json"])[0]["RepoTags"], names)
        asked = (TOP / "packaging/compose.yaml").read_text(encoding="utf-8")
        self.assertIn("image: edgecase:latest\n", asked)

    def test_nobody_in_it_is_root(self):
        files = self.content()
        layer = json.loads(files["manifest.json"])[0]
        config = json.loads(files[layer["Config"]])["config"]
        self.assertEqual(config["User"], "65532:65532")
        self.assertEqual(sorted(config["Volumes"]), ["/srv/edgecase", "/var/lib/edgecase"])
        with tarfile.open(fileobj=io.BytesIO(files[layer["Layers"][0]])) as root:
            owners = {each.name.removeprefix("./"): (each.uid, each.mode & 0o777) for each in root.getmembers()}
        for name in ("run/edgecase", "var/lib/edgecase", "srv/edgecase"):
            self.assertEqual(owners[name], (65532, 0o750), name)
        self.assertEqual(owners["usr/bin/edgecase"], (0, 0o755))
        self.assertIn("usr/share/zoneinfo/Europe/Berlin", owners)

    def test_a_program_that_needs_libraries_is_refused(self):
        result = run(IMAGE, VERSION, ARCHITECTURE, "/bin/sh", self.directory / "none.tar")
        self.assertEqual(result.returncode, 1)
        self.assertIn("needs libraries", result.stderr)
        self.assertFalse((self.directory / "none.tar").exists())


if __name__ == "__main__":
    unittest.main()
