"""Files that hurt whoever reads, lists or removes them."""

from tests.sandbox.attacks.case import Case

_MADE = "print('made')\n"

CASES = (
    Case(
        name="links",
        tries="links to the host, to the library, to themselves, where the cleaner will pass",
        code="""
import os
for index, target in enumerate(("/", "/ctxbench/lib", "/etc/passwd", "self", "..", "../..", "@CANARY@", "/proc/1")):
    os.symlink(target, f"link{index}")
os.symlink("loop", "loop")
os.mkdir("d")
os.symlink("..", "d/up")
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="pipes-and-sockets",
        tries="named pipes and sockets, which block who opens them",
        code="""
import os, socket
for index in range(20):
    os.mkfifo(f"pipe{index}")
socket.socket(socket.AF_UNIX).bind("socket")
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="sparse-file",
        tries="a file whose size is far beyond its content",
        code="open('s', 'wb').truncate(60 << 20)\n" + _MADE,
        seen="made",
    ),
    Case(
        name="set-uid-file",
        tries="a program with the set-uid and set-gid bit, a file system that honours it",
        code="""
import os, shutil
shutil.copy("/bin/true", "mine")
os.chmod("mine", 0o6777)
held = os.statvfs(".").f_flag
print(bool(held & os.ST_NOSUID), bool(held & os.ST_NODEV))
""",
        seen="True True",
    ),
    Case(
        name="attributes",
        tries="extended attributes of privilege, the immutable flag, an access list",
        code="""
import array, fcntl, os
from attack_tools import word
open("f", "w").close()
for name in ("trusted.x", "security.capability", "system.posix_acl_access"):
    print(word(lambda: os.setxattr("f", name, b"x")).startswith("done"))
def immutable():
    fcntl.ioctl(os.open("f", os.O_RDONLY), 0x40086602, array.array("l", [0x10]))
print(word(immutable).startswith("done"))
""",
        seen="False\n" * 4,
    ),
    Case(
        name="long-names",
        tries="names of 255 bytes",
        code="import os\nfor char in 'abc':\n    os.mkdir(char * 255)\n    open(char * 255 + '/' + char * 255, 'w')\n"
        + _MADE,
        seen="made",
    ),
    Case(
        name="odd-names",
        tries="names with line breaks, escapes, quotes, dashes, blanks, options",
        code="""
import os
for name in ("a\\nb", "\\033[2J", "-rf", "--", " ", "'", '"', "$(id)", "*", "..x", "\\t", "\\u202e", "a\\rb"):
    open(name, "w").close()
    os.makedirs(name + "d/" + name)
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="names-that-are-no-text",
        tries="names that are not UTF-8",
        code="import os\nfor byte in range(128, 256):\n    os.mkdir(bytes([byte, 255]))\n" + _MADE,
        seen="made",
    ),
    Case(
        name="deep-tree",
        tries="folders 3000 deep",
        code="import os\nfor _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w').close()\n" + _MADE,
        seen="made",
    ),
    Case(
        name="closed-folders",
        tries="folders without rights, its own among them",
        code="""
import os
os.makedirs("a/b/c")
open("a/b/f", "w").close()
os.chmod("a/b/f", 0)
for folder in ("a/b/c", "a/b", "a", "."):
    os.chmod(folder, 0)
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="move-its-folder",
        tries="rename or remove its folder, put a link to the root in its place",
        code="""
import os
from attack_tools import word
here = os.getcwd()
for act in (lambda: os.rename(here, here + "x"), lambda: os.rmdir(here), lambda: os.symlink("/", here)):
    word(act)
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="remove-its-folder",
        tries="remove everything in its folder, and write on through an open file without a name",
        code="""
import os, shutil
held = [open(f"f{index}", "wb") for index in range(50)]
for file in held:
    os.remove(file.name)
    file.write(b"x" * (1 << 19))
shutil.rmtree(".", ignore_errors=True)
"""
        + _MADE,
        seen="made",
    ),
    Case(
        name="memory-files",
        tries="files in memory that no folder names",
        code="""
import os
from attack_tools import word
def fill():
    handles = [os.memfd_create(f"m{index}") for index in range(20)]
    for handle in handles:
        os.write(handle, b"x" * (8 << 20))
print(word(fill) in ("done", "EPERM", "ENOSYS", "EFBIG", "ENOSPC"))
""",
        seen="True",
    ),
    Case(
        name="many-files",
        tries="thousands of small files and hard links",
        code="""
import os
for index in range(3000):
    open(f"f{index}", "w").write("x")
for index in range(3000):
    os.link("f0", f"l{index}")
"""
        + _MADE,
        seen="made",
    ),
)
