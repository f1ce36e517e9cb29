#!/bin/sh
# Make sure that a Docker engine answers and that a base image exists: docker_engine.sh
# If no engine answers, it installs docker.io and starts dockerd in the background; this needs root and apt-get.
# The engine keeps running, and the script can be run again. DOCKERD_LOG names dockerd's log.
set -eu
here=$(dirname "$0")
log="${DOCKERD_LOG:-/var/log/dockerd.log}"
base=python:3.11-slim-bookworm
say() { echo "docker_engine: $*" >&2; }
fail() { say "$*"; exit 1; }
answers() { command -v docker >/dev/null 2>&1 && docker version >/dev/null 2>&1; }

install_engine() {
    command -v dockerd >/dev/null 2>&1 && command -v docker >/dev/null 2>&1 && command -v iptables >/dev/null 2>&1 && return 0
    say "installing docker.io and iptables with apt-get"
    install_packages && return 0
    apt-get update -q >/dev/null 2>&1 && install_packages
}

install_packages() {
    # Since Debian 13, the client is a separate package.
    client=$(apt-cache search --names-only '^docker-cli$' | cut -d' ' -f1)
    # shellcheck disable=SC2086 # an empty name must vanish
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io iptables $client >/dev/null 2>&1
}

start_engine() {
    if [ -d /run/systemd/system ]; then
        systemctl start docker >/dev/null 2>&1 || fail "systemd cannot start Docker; see its log (journalctl -u docker)"
    else
        say "starting dockerd (log: $log)"
        # setsid: dockerd keeps running after this script and the terminal end. 9>&-: dockerd must not keep the script's lock.
        setsid dockerd >"$log" 2>&1 </dev/null 9>&- &
    fi
    waited=0
    until answers; do
        waited=$((waited + 1))
        [ "$waited" -le 60 ] || fail "dockerd does not answer after 60 s: $(tail -n 1 "$log" 2>/dev/null || true)"
        sleep 1
    done
}

if ! answers; then
    [ "$(id -u)" = 0 ] || fail "no Docker engine answers; start Docker, or run the script as root"
    command -v apt-get >/dev/null 2>&1 || fail "no Docker engine answers; install and start Docker"
    exec 9>/run/ctxbench-docker.lock
    flock 9
    if ! answers; then
        install_engine || fail "docker.io could not be installed; check the connection to the Debian mirror (apt-get update)"
        answers || start_engine
    fi
    flock -u 9
fi
docker image inspect "$base" >/dev/null 2>&1 || docker pull -q "$base" >/dev/null 2>&1 || sh "$here/debian_base.sh"
say "Docker $(docker version --format '{{.Server.Version}}') answers"
