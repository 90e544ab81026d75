#!/usr/bin/python3
"""The package's idea of the binary interface is that of the headers, and a library that is another one is not imported."""
# labels: nosan
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile

import scene

sys.path.insert(0, os.path.join(scene.PACKAGE, "pawl"))  # _abi alone: it needs no library
import _abi

COMPILER = next(filter(None, map(shutil.which, [os.environ.get("CC", "cc"), "gcc", "clang"])), None)


def program():
    """Prints what the headers say of all that _abi lists; and repeats its prototypes, which must not contradict them."""
    lines = ["#include <stdio.h>", "#include <pawl/pawl.h>", _abi.PROTOTYPES, "int main(void) {"]
    for name, struct in _abi.STRUCTS.items():
        lines.append('printf("sizeof %s %%zu\\n", sizeof(struct %s));' % (name, name))
        for field, _ in struct._fields_:
            lines.append(
                'printf("%s.%s %%zu %%zu\\n", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));'
                % (name, field, name, field, name, field)
            )
    for name in _abi.CONSTANTS:
        lines.append('printf("%s %%lld\\n", (long long)%s);' % (name, name))
    return "\n".join(lines + ["return 0; }", ""])


def expected():
    lines = []
    for name, struct in _abi.STRUCTS.items():
        lines.append("sizeof %s %d" % (name, ctypes.sizeof(struct)))
        for field, _ in struct._fields_:
            place = getattr(struct, field)
            lines.append("%s.%s %d %d" % (name, field, place.offset, place.size))
    for name, value in _abi.CONSTANTS.items():
        lines.append("%s %d" % (name, ctypes.c_int64(value).value))
    return lines


class AbiTest(scene.Test):
    def setUp(self):
        if COMPILER is None:
            self.skipTest("no C compiler")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compile(self, text, *options):
        source, result = os.path.join(self.folder, "it.c"), os.path.join(self.folder, "it")
        with open(source, "w") as file:
            file.write(text)
        words = [COMPILER, "-std=c17", "-Wall", "-Werror", "-I", os.path.join(scene.SOURCE, "include"), *options]
        done = subprocess.run([*words, "-o", result, source], stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return result

    def imported(self, library):
        """What is said when the package meets this library."""
        environment = {**os.environ, "PAWL_LIBRARY": library}
        words = [sys.executable, "-c", "import pawl"]
        done = subprocess.run(words, env=environment, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done.stderr.strip().splitlines()[-1]

    def stub(self, version, names, layout="memset(options, 0, 8);"):
        """A library with these functions, none of which does what it should."""
        text = '#include <string.h>\nconst char *pawl_version(void); const char *pawl_version(void) { return "%s"; }\n' % version
        for name in names:
            body = "void %s(void *options); void %s(void *options) { (void)options; %s }\n"
            if name != "pawl_version":
                text += body % (name, name, layout if name.endswith("options_init") else "")
        return self.compile(text, "-shared", "-fPIC", "-Wno-unused-parameter")

    def test_structs_constants_and_prototypes_are_those_of_the_headers(self):
        printed = subprocess.run([self.compile(program())], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(printed.splitlines(), expected())

    def test_a_prototype_that_differs_would_be_found(self):
        text = program() + "void pawl_session_flush(struct pawl_session *, int64_t);\n"
        source = os.path.join(self.folder, "bad.c")
        with open(source, "w") as file:
            file.write(text)
        words = [COMPILER, "-std=c17", "-I", os.path.join(scene.SOURCE, "include"), "-fsyntax-only", source]
        self.assertNotEqual(subprocess.run(words, stderr=subprocess.DEVNULL).returncode, 0)

    def test_the_version_is_that_of_the_headers(self):
        text = '#include <stdio.h>\n#include <pawl/version.h>\nint main(void) { printf("%d.%d", PAWL_VERSION_MAJOR, PAWL_VERSION_MINOR); }\n'
        printed = subprocess.run([self.compile(text)], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertEqual(printed, _abi.VERSION)

    def test_a_library_that_is_not_there_is_named(self):
        said = self.imported("/nowhere/libpawl.so")
        self.assertIn("ImportError: pawl: cannot load libpawl.so (/nowhere/libpawl.so", said)
        self.assertIn("set PAWL_LIBRARY", said)

    def test_a_library_of_another_version_is_refused(self):
        said = self.imported(self.stub("7.3.1", []))
        self.assertIn("is version 7.3.1, but this package needs libpawl %s.x" % _abi.VERSION, said)

    def test_a_library_without_a_function_is_refused(self):
        names = [name for name, _, _ in _abi.signatures() if name != "pawl_group_await"]
        self.assertIn("does not have the function pawl_group_await", self.imported(self.stub(_abi.VERSION + ".0", names)))

    def test_a_library_with_other_structs_is_refused(self):
        names = [name for name, _, _ in _abi.signatures()]
        said = self.imported(self.stub(_abi.VERSION + ".0", names, "memset(options, 0, 1000);"))
        self.assertIn("has another layout of structs", said)


if __name__ == "__main__":
    scene.main()
