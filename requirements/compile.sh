#!/bin/sh
# Compiles every lock file of this folder from pyproject.toml: pinned, hashed, for every platform and Python >= 3.11.
# (A uv.lock would record the registry's host; these files do not.)
set -eu
cd "$(dirname "$0")/.."
compile() {
    out=$1
    shift
    uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate \
        --no-emit-index-url --no-emit-find-links --output-file "requirements/$out" "$@" pyproject.toml
}
compile operator.txt --extra operator
compile dev.txt --extra operator --extra worker --extra voices --group dev
# The CPU worker image takes torch and numpy from Debian, so its list leaves them out.
compile worker-image.txt --extra worker --extra voices --constraint requirements/dev.txt \
    --no-emit-package torch --no-emit-package numpy
