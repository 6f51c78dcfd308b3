#!/bin/sh
# Creates .venv from the pinned, hashed requirements. Needs only python3 >= 3.11 with venv; uv comes from PyPI.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "dev/setup.sh: Python 3.11 or newer is needed, $("$python" --version) was found. Set PYTHON to another one." >&2
    exit 1
}
if [ ! -x .venv/bin/python ]; then
    "$python" -m venv .venv || {
        echo "dev/setup.sh: could not create .venv. On Debian and Ubuntu: apt-get install python3-venv" >&2
        exit 1
    }
    echo '*' >.venv/.gitignore
fi
uv=$(command -v uv || true)
if [ -z "$uv" ]; then
    tools=${XDG_CACHE_HOME:-$HOME/.cache}/cosyvoice-operator/uv
    [ -x "$tools/bin/uv" ] || { "$python" -m venv "$tools" && "$tools/bin/pip" install --quiet uv; }
    uv=$tools/bin/uv
fi
echo "Installing the pinned dependencies (torch is about 3 GB the first time) ..."
VIRTUAL_ENV=$PWD/.venv "$uv" pip sync --quiet --require-hashes requirements/dev.txt
VIRTUAL_ENV=$PWD/.venv "$uv" pip install --quiet --no-deps --editable .
