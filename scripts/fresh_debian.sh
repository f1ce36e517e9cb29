#!/bin/sh
# Try ctxbench on a plain Debian: scripts/fresh_debian.sh bookworm|trixie [FOLDER [TARGET...]]
# As root. Makes a chroot with debootstrap in FOLDER (default /var/tmp/ctxbench-SUITE), clones the commit that is checked
# out into it, runs the targets (default: quickstart, then test) and prints how long each took. FOLDER stays; a second
# call takes its Debian and clones anew. The Docker engine of this machine is used; where none answers, bubblewrap is.
# MIRROR is the Debian mirror. Of pip's settings those in PIP_* variables are taken over.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
suite="${1:?bookworm or trixie}"
root="${2:-/var/tmp/ctxbench-$suite}"
[ $# -gt 2 ] && shift 2 || set -- quickstart test
say() { echo "fresh_debian: $*" >&2; }
[ "$(id -u)" = 0 ] || { say "only root can make a chroot"; exit 1; }
command -v debootstrap >/dev/null 2>&1 || { say "debootstrap is missing (Debian: apt-get install debootstrap)"; exit 1; }

if [ ! -e "$root/etc/debian_version" ]; then
    say "making Debian $suite in $root"
    # What the README asks for, and nothing else.
    debootstrap --variant=minbase --include=ca-certificates,git,make,python3,python3-venv "$suite" "$root" \
        "${MIRROR:-http://deb.debian.org/debian}" >"/var/tmp/debootstrap-$suite.log" 2>&1 ||
        { say "debootstrap failed: $(tail -n 1 "/var/tmp/debootstrap-$suite.log")"; exit 1; }
fi
# Boxes run as other users, who must get through.
chmod 755 "$root"
for file in /etc/resolv.conf /etc/hosts "${PIP_CERT:-}"; do
    [ -e "$file" ] && mkdir -p "$root$(dirname "$file")" && cp --remove-destination "$(readlink -f "$file")" "$root$file"
done

mounted=""
unmount() { for place in $mounted; do umount -l "$root$place" || true; done; }
trap unmount EXIT
trap 'exit 130' INT TERM
bind() {
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    mount --make-rslave "$root$1"
    mounted="$1 $mounted"
}
for place in /proc /sys /dev /run; do bind "$place"; done
if [ -d "${PIP_FIND_LINKS:-}" ]; then bind "$PIP_FIND_LINKS"; fi

rm -rf "$root/srv/ctxbench"
git clone -q "$here" "$root/srv/ctxbench"
settings=$(env | grep '^PIP_' || true)
status=0
for target in "$@"; do
    began=$(date +%s)
    # shellcheck disable=SC2086 # one word a setting
    env -i HOME=/root LANG=C.UTF-8 CI=true PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin $settings \
        chroot "$root" make -C /srv/ctxbench "$target" && outcome=passed || { outcome=failed; status=1; }
    say "$suite, $(chroot "$root" python3 --version): make $target $outcome in $(($(date +%s) - began)) s"
done
exit "$status"
