"""Makes a wheel of the package, for pip (PEP 517). A wheel of plain Python is an archive with three files beside the code, so
no other tool is needed, and none has to be fetched."""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TAG = "py3-none-any"


def _version():
    """The library's that the package is for."""
    text = (HERE / "pawl" / "_abi.py").read_text()
    return re.search(r'^VERSION = "([0-9.]+)"', text, re.MULTILINE).group(1) + ".0"


METADATA = """Metadata-Version: 2.1
Name: pawl
Version: {version}
Summary: Shares machine-learning parameters between machines: a thin client for libpawl
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: numpy
"""

WHEEL = """Wheel-Version: 1.0
Generator: wheel_of_pawl
Root-Is-Purelib: true
Tag: {tag}
"""


def _record(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "%s,sha256=%s,%d\n" % (name, digest, len(data))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    about = "pawl-%s.dist-info/" % version
    files = {"pawl/" + path.name: path.read_bytes() for path in sorted((HERE / "pawl").glob("*.py"))}
    files[about + "METADATA"] = METADATA.format(version=version).encode()
    files[about + "WHEEL"] = WHEEL.format(tag=TAG).encode()
    record = "".join(_record(name, data) for name, data in files.items()) + about + "RECORD,,\n"
    files[about + "RECORD"] = record.encode()
    name = "pawl-%s-%s.whl" % (version, TAG)
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return name
