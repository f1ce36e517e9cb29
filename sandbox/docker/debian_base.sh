#!/bin/sh
# Build the Docker image ctxbench-debian-base from Debian packages: for machines that cannot pull
# python:3.11-slim-bookworm. debian_base.sh [TAG]; needs root, Docker, and debootstrap or apt-get.
# DEBIAN_MIRROR replaces this machine's own mirror. An existing image is left alone.
set -eu
tag="${1:-ctxbench-debian-base}"
suite=bookworm
say() { echo "debian_base: $*" >&2; }
fail() { say "$*"; exit 1; }

command -v docker >/dev/null 2>&1 || fail "docker is missing; run docker_engine.sh in the script's folder"
docker version >/dev/null 2>&1 || fail "no Docker engine answers; run docker_engine.sh in the script's folder"
if docker image inspect "$tag" >/dev/null 2>&1; then say "the image $tag exists already"; exit 0; fi
[ "$(id -u)" = 0 ] || fail "only root can unpack Debian's packages; run the script as root (sudo $0)"
if ! command -v debootstrap >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || fail "debootstrap is missing; install it"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap debian-archive-keyring >/dev/null 2>&1 ||
        { apt-get update -q >/dev/null 2>&1 &&
          DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends debootstrap debian-archive-keyring >/dev/null 2>&1; } ||
        fail "debootstrap could not be installed; check the connection to the Debian mirror (apt-get update)"
fi

# Use the mirror of this machine's apt, because it can be reached.
uri_of() {
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 2>/dev/null |
        awk -v suite="$1" '$1 == suite && $2 == "main" { sub("/$", "", $3); print $3; exit }'
}
mirror="${DEBIAN_MIRROR:-$(uri_of $suite)}"
mirror="${mirror:-http://deb.debian.org/debian}"
security=$(uri_of $suite-security)
updates=$(uri_of $suite-updates)

root=$(mktemp -d)
log="$root.log"
trap 'rm -rf "$root" "$log"' EXIT
trap 'exit 130' INT TERM
say "unpacking Debian $suite from $mirror (about a minute)"
debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,git,ca-certificates \
    "$suite" "$root" "$mirror" >"$log" 2>&1 ||
    fail "debootstrap failed: $(tail -n 1 "$log"); check the mirror $mirror or name another in DEBIAN_MIRROR"

{
    echo "deb $mirror $suite main"
    [ -z "$updates" ] || echo "deb $updates $suite-updates main"
    [ -z "$security" ] || echo "deb $security $suite-security main"
} >"$root/etc/apt/sources.list"
# Add this machine's own certificates: fetching may need them behind a gateway.
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    chroot "$root" update-ca-certificates >/dev/null 2>&1
fi
# As in the official Python images, `pip install` works and `python` exists.
rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
ln -sf python3 "$root/usr/bin/python"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*
tar -C "$root" --numeric-owner -c . | docker import \
    --change 'CMD ["python3"]' \
    --change 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8' \
    - "$tag" >/dev/null || fail "the image could not be imported; see the Docker engine's log (journalctl -u docker)"
say "built $tag ($(docker image inspect --format '{{.Size}}' "$tag" | awk '{ printf "%d MB", $1 / 1000000 }'))"
