"""Reading what is not the job's: the host, its secrets, the guest, the tree that holds the answers."""

# ruff: noqa: E501 - attacks are programs as data

from tests.sandbox.attacks.case import Case

_SCAN = """
import re
def scan():
    found, pattern = set(), re.compile(b"ANSWER" + b"-[0-9a-f]{16}")
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights or "[v" in line:
                continue
            low, high = (int(part, 16) for part in span.split("-"))
            try:
                memory.seek(low)
                found |= set(pattern.findall(memory.read(high - low)))
            except (OSError, ValueError, OverflowError):
                continue
    return found
"""

CASES = (
    Case(
        name="memory-of-the-guest",
        tries="memory, environment, descriptors, maps of process 1 through /proc",
        code="""
import os
from attack_tools import tried
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall"):
    tried(name, lambda: open(f"/proc/1/{name}", "rb").read(64))
tried("fd", lambda: os.listdir("/proc/1/fd"))
for name in ("fd/0", "fd/1", "root/etc/passwd", "cwd", "exe"):
    tried(name, lambda: os.open(f"/proc/1/{name}", os.O_RDONLY))
""",
        seen="".join(
            f"{name}: <absent>\n"
            for name in "mem environ maps auxv stack syscall fd fd/0 fd/1 root/etc/passwd cwd exe".split()  # noqa: SIM905
        ),
    ),
    Case(
        name="memory-of-others",
        tries="memory, descriptors and environment of every other process",
        code="""
import os
from attack_tools import word
own, opened = os.getpid(), []
for pid in range(1, 1000):
    if pid == own:
        continue
    for name in ("mem", "environ", "fd/0", "fd/1", "fd/3", "cwd/x"):
        if word(lambda: os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY))) == "done":
            opened.append((pid, name))
print(opened)
""",
        seen="[]",
    ),
    Case(
        name="the-answers-in-memory",
        tries="the tree's files, overwritten for this job, in the memory that it was forked with",
        call=True,
        code=_SCAN
        + """
result = sorted(text.decode() for text in scan() if text.decode() != arguments["own"])
""",
        seen="",
        result=[],
    ),
    Case(
        name="its-own-arguments-in-memory",
        tries="the control: the same search finds what a call was given",
        call=True,
        code=_SCAN + "result = sorted(text.decode() for text in scan())\n",
        seen="",
        result=["@CONTROL@"],
    ),
    Case(
        name="the-answers-on-disk",
        tries="the tree's original file: in the working folder, in files without a name, in the image",
        code="""
import os, re
found = set()
pattern = re.compile(b"ANSWER" + b"-[0-9a-f]{16}")
for top in (".", "..", "/work", "/ctxbench", "/tmp", "/dev/shm", "/run", "/var/tmp", "/home", "/root", "/srv", "/opt", "/mnt"):
    for folder, _, names in os.walk(top):
        for name in names:
            try:
                with open(os.path.join(folder, name), "rb") as file:
                    found |= set(pattern.findall(file.read()))
            except OSError:
                pass
with open("space", "wb+") as file:
    file.truncate(8 << 20)
    found |= set(pattern.findall(file.read()))
print(found)
print(open("pkg/target.py").read().strip())
""",
        seen="set()\n# blank",
    ),
    Case(
        name="environment-of-the-host",
        tries="variables of whoever started the sandbox",
        code="""
import os
print("@SECRET_NAME@" in os.environ, len([name for name in os.environ if name.startswith(("AWS", "OPENAI", "CTXBENCH_HOME", "SSH", "PIP", "VIRTUAL"))]))
print(sorted(set(os.environ) - {"PATH", "HOME", "LANG", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH",
      "TMPDIR", "CTXBENCH_ATTACK", "LC_CTYPE", "PWD"}))
""",
        seen="False 0\n[]",
    ),
    Case(
        name="command-lines",
        tries="the host's command lines, for a secret among them",
        code="""
import os
print(sorted({open(f"/proc/{pid}/cmdline").read().split("\\0")[0].rpartition("/")[2][:7] for pid in os.listdir("/proc") if pid.isdigit()}))
""",
        seen="['python3']",
    ),
    Case(
        name="files-of-the-host",
        tries="passwords, keys, homes, the checkout, the references, a file planted for it",
        code="""
import os
from attack_tools import tried
for path in ("@CANARY@/secret", "/etc/shadow", "/root/.ssh/id_rsa", "/root/.bash_history", "/var/lib/docker",
             "@CHECKOUT@/pyproject.toml", "/var/log/syslog", "/proc/kcore", "/proc/1/root@CANARY@/secret",
             "/etc/ssh/ssh_host_ed25519_key", "/var/run/secrets/kubernetes.io/serviceaccount/token"):
    tried("file", lambda: os.close(os.open(path, os.O_RDONLY)))
""",
        seen="file: <absent>\n" * 11,
    ),
    Case(
        name="descriptors",
        tries="use descriptors that it inherited, read the stream of jobs from stdin",
        code="""
import os
held = []
for handle in range(1024):
    try:
        os.fstat(handle)
    except OSError:
        continue
    held.append(handle)
print(held, os.read(0, 100))
""",
        seen="[0, 1, 2] b''",
    ),
    Case(
        name="write-to-the-host",
        tries="create a file in every folder that can be seen outside its own",
        code="""
import os
from attack_tools import word
made = []
tops = "bin boot ctxbench dev etc home lib lib64 media mnt opt root run sbin srv tmp usr var work"
for top in ("/", *("/" + name for name in tops.split()), os.getcwd() + "/..", os.path.dirname(os.environ["TMPDIR"])):
    for folder, inner, _ in os.walk(top):
        if folder.count("/") > 3:
            inner.clear()
        path = os.path.join(folder, "@TOKEN@")
        if word(lambda: os.close(os.open(path, os.O_CREAT | os.O_WRONLY))).startswith("done"):
            made.append(folder)
own = ("/work", "/dev/shm")
print(sorted({place for place in made if not os.path.realpath(place).startswith(own)}))
""",
        seen="[]",
    ),
    Case(
        name="the-canary",
        tries="write, link, rename, chmod a file of the host whose path it knows",
        code="""
import os
from attack_tools import tried
tried("write", lambda: open("@CANARY@/secret", "w"))
tried("link", lambda: os.link("@CANARY@/secret", "mine"))
tried("rename", lambda: os.rename("@CANARY@/secret", "mine"))
tried("chmod", lambda: os.chmod("@CANARY@/secret", 0o777))
tried("remove", lambda: os.remove("@CANARY@/secret"))
""",
        seen="write: <absent>\nlink: <absent>\nrename: <absent>\nchmod: <absent>\nremove: <absent>",
    ),
)
