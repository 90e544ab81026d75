#!/usr/bin/python3
"""`pip install ./python` fetches nothing, and what it installs is the package, of the version of the headers."""
# labels: nosan
import os
import re
import subprocess
import sys
import tempfile

import scene

PIP = [sys.executable, "-m", "pip"]
if subprocess.run(PIP + ["--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode != 0:
    print("skipped: there is no pip for %s" % sys.executable)
    sys.exit(77)


class InstallTest(scene.Test):
    def test_the_package_is_installed_without_a_network_and_works(self):
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "target")
            words = PIP + ["install", "--quiet", "--no-index", "--no-deps", "--target", target, scene.PACKAGE]
            done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            text = (
                "import pawl\n"
                "with pawl.Session() as s: print(s.ensure('a/b', size=3).pull().tolist())\n"
                "from importlib.metadata import version\n"
                "print(pawl.__file__, version('pawl'))\n"
            )
            environment = {**os.environ, "PYTHONPATH": target}
            printed = subprocess.run([sys.executable, "-c", text], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
            with open(os.path.join(scene.SOURCE, "include", "pawl", "version.h")) as header:
                parts = dict(re.findall(r"PAWL_VERSION_(\w+) (\d+)", header.read()))
            # The package is that of the minor version; which patch the library is does not matter to it.
            expected = "%s/pawl/__init__.py %s.%s.0" % (target, parts["MAJOR"], parts["MINOR"])
            self.assertEqual(printed.stdout.splitlines(), ["[0.0, 0.0, 0.0]", expected])


if __name__ == "__main__":
    scene.main()
