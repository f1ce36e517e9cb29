#!/bin/sh
# Try ctxbench on a plain Debian: scripts/fresh_debian.sh bookworm|trixie [FOLDER [TARGET...]]
# Run it as root. It installs a Debian with debootstrap in FOLDER (default /var/tmp/ctxbench-SUITE), clones the current
# commit into it, runs the targets (default: quickstart, then test) and prints their durations. FOLDER stays; a second
# call reuses its Debian and clones again. It uses this machine's Docker engine, or bubblewrap if no engine answers.
# MIRROR is the Debian mirror. pip's PIP_* variables are passed on.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
say() { echo "fresh_debian: $*" >&2; }
suite="${1:-}"
case "$suite" in bookworm | trixie) ;; *) say "'$suite' is not a supported Debian; give bookworm (12) or trixie (13)"; exit 1 ;; esac
root="${2:-/var/tmp/ctxbench-$suite}"
[ $# -gt 2 ] && shift 2 || set -- quickstart test
[ "$(id -u)" = 0 ] || { say "only root can install Debian; run the script as root"; exit 1; }
command -v debootstrap >/dev/null 2>&1 || { say "debootstrap is missing (Debian: apt-get install debootstrap)"; exit 1; }

if [ ! -e "$root/etc/debian_version" ]; then
    say "installing Debian $suite in $root"
    # Only the packages that the README requires.
    debootstrap --variant=minbase --include=ca-certificates,git,make,python3,python3-venv "$suite" "$root" \
        "${MIRROR:-http://deb.debian.org/debian}" >"/var/tmp/debootstrap-$suite.log" 2>&1 ||
        { say "debootstrap failed: $(tail -n 1 "/var/tmp/debootstrap-$suite.log"); check the connection to the mirror"; exit 1; }
fi
# Boxes run as other users, which need access.
chmod 755 "$root"
for file in /etc/resolv.conf /etc/hosts "${PIP_CERT:-}"; do
    [ -e "$file" ] && mkdir -p "$root$(dirname "$file")" && cp --remove-destination "$(readlink -f "$file")" "$root$file"
done
# This machine's additional certificates, also for images that are built inside.
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
    chroot "$root" update-ca-certificates >/dev/null 2>&1
fi

# Start the engine outside: inside, it would outlive the Debian and resolve the folders of boxes in it.
sh "$here/sandbox/docker/docker_engine.sh" || say "no Docker engine answers; using bubblewrap"

# The root is a mount in a namespace, which removes all mounts at its end. In a plain chroot the kernel allows no namespaces.
inside() {
    # shellcheck disable=SC2016 # the inner shell expands
    unshare --mount --propagation slave sh -euc '
        root=$1 wheels=$2
        shift 2
        mount --bind "$root" "$root"
        for place in /proc /sys /dev /run $wheels; do
            mkdir -p "$root$place"
            mount --rbind "$place" "$root$place"
        done
        cd "$root"
        mkdir -p old
        pivot_root . old
        cd /
        umount -l old
        exec "$@"' sh "$root" "$wheels" env -i HOME=/root LANG=C.UTF-8 CI=true PIP_FIND_LINKS="${PIP_FIND_LINKS:-}" \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}
wheels=""
if [ -d "${PIP_FIND_LINKS:-}" ]; then wheels="$PIP_FIND_LINKS"; fi

rm -rf "$root/srv/ctxbench"
git clone -q "$here" "$root/srv/ctxbench"
{ echo "[global]"; env | grep '^PIP_' | sed 's/^PIP_//' | while IFS='=' read -r name value; do
    echo "$(echo "$name" | tr 'A-Z_' 'a-z-') = $value"; done; } >"$root/etc/pip.conf"
status=0
for target in "$@"; do
    began=$(date +%s)
    inside make -C /srv/ctxbench "$target" && outcome=passed || { outcome=failed; status=1; }
    say "$suite, $(inside python3 --version): make $target $outcome in $(($(date +%s) - began)) s"
done
exit "$status"
