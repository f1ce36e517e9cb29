"""The network: this machine, its neighbours, the world, and sockets that are no network at all."""

# ruff: noqa: E501 - attacks are programs as data

from tests.sandbox.attacks.case import Case

CASES = (
    Case(
        name="loopback",
        tries="connect to a server on the host's loopback",
        code="""
import socket
from attack_tools import tried
for host in ("127.0.0.1", "localhost", "::1"):
    tried(host, lambda host=host: socket.create_connection((host, @PORT@), 2).recv(99))
""",
        seen="127.0.0.1: <unreachable>\nlocalhost: <unreachable>\n::1: <unreachable>",
    ),
    Case(
        name="gateway",
        tries="connect to the host by its bridge and its own addresses",
        code="""
import socket
from attack_tools import tried
for host in "172.17.0.1 @ADDRESS@".split():
    tried("host", lambda host=host: socket.create_connection((host, @PORT@), 2).recv(99))
""",
        seen="host: <unreachable>\nhost: <unreachable>",
    ),
    Case(
        name="outside",
        tries="TCP and UDP to the world, a name server, a cloud's metadata service",
        code="""
import socket
from attack_tools import tried
for host, port in (("1.1.1.1", 443), ("8.8.8.8", 53), ("169.254.169.254", 80)):
    tried("tcp", lambda: socket.create_connection((host, port), 2))
    tried("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (host, port)))
""",
        seen="tcp: <unreachable>\nudp: <unreachable>\n" * 3,
    ),
    Case(
        name="names",
        tries="look a name up, as a way to send data out",
        code="import socket\nfrom attack_tools import tried\ntried('name', lambda: socket.getaddrinfo('x.example.com', 80))\n",
        seen="name: gaierror",
    ),
    Case(
        name="interfaces",
        tries="find an interface other than the loopback",
        code="""
import socket
print(sorted(set(line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]) - {"lo"}))
""",
        seen="[]",
    ),
    Case(
        name="abstract-socket",
        tries="connect to an abstract Unix socket of the host",
        code="""
import socket
from attack_tools import tried
tried("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\x00@TOKEN@"))
""",
        seen="abstract: <unreachable>",
    ),
    Case(
        name="engine-socket",
        tries="connect to the container engine, to containerd, to the system bus",
        code="""
import socket
from attack_tools import tried
for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
             "/run/dbus/system_bus_socket", "/run/systemd/private"):
    tried("socket", lambda path=path: socket.socket(socket.AF_UNIX).connect(path))
""",
        seen="socket: <absent>\n" * 5,
    ),
    Case(
        name="odd-families",
        tries="a socket of every other family: VSOCK, NETLINK, PACKET, ALG, BLUETOOTH, CAN, ...",
        code="""
import socket
from attack_tools import word
usual = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6}
kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
print([(family, kind) for family in range(64) if family not in usual for kind in kinds
       if word(lambda: socket.socket(family, kind)).startswith("done")])
""",
        seen="[]",
    ),
    Case(
        name="vsock",
        tries="AF_VSOCK, which no network namespace holds",
        code="import socket\nfrom attack_tools import tried\ntried('vsock', lambda: socket.socket(40, socket.SOCK_STREAM))\n",
        seen="vsock: <no-family>",
    ),
    Case(
        name="netlink",
        tries="AF_NETLINK, to see and change the kernel's tables",
        code="import socket\nfrom attack_tools import tried\ntried('netlink', lambda: socket.socket(16, socket.SOCK_RAW, 0))\n",
        seen="netlink: <no-family>",
    ),
    Case(
        name="raw-sockets",
        tries="raw sockets of the Internet families",
        code="""
import socket
from attack_tools import tried
for family in (socket.AF_INET, socket.AF_INET6):
    tried("raw", lambda: socket.socket(family, socket.SOCK_RAW, 1))
""",
        seen="raw: <no-family>\nraw: <no-family>",
    ),
    Case(
        name="listen",
        tries="listen where the host could be reached from outside",
        code="""
import socket, time
from attack_tools import word
def listen():
    server = socket.socket()
    server.bind(("0.0.0.0", @FREE_PORT@))
    server.listen()
    time.sleep(1.5)
print(word(listen) in ("done", "EPERM", "EACCES"))
""",
        seen="True",
    ),
)
