#!/bin/sh
# Takes out of Debian's PyTorch what a server that computes on CPUs never opens, and compiles the Python code that
# stays. Runs as root while the image is built. What it takes, the image loses: torch.compile, torch.export, the ONNX
# exporter and everything distributed.
set -eu
folder=$(dirname "$0")
packages=/usr/lib/python3/dist-packages
libraries=/usr/lib/$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("MULTIARCH"))')
tools="binutils gcc libc6-dev patchelf"

if [ -d "$packages/torch" ]; then
    # Open MPI: linked, never called. Z3: linked, and not one symbol of it is used.
    # shellcheck disable=SC2086 # a list of words
    apt-get install -y --no-install-recommends $tools
    python3 "$folder/mpi_stub.py" "$libraries"
    find "$libraries" -name 'libtorch_cpu.so*' -type f -exec patchelf --remove-needed libz3.so.4 {} +
    stub=$(readlink -f "$libraries/libmpi.so.40")
    cp "$stub" /tmp/libmpi.so.40
    # shellcheck disable=SC2086
    apt-get purge -y --auto-remove -o APT::AutoRemove::RecommendsImportant=false \
        -o APT::AutoRemove::SuggestsImportant=false $tools

    # Whole packages, so that Debian's own list of what is installed stays true.
    # shellcheck disable=SC2016 # dpkg-query's own variable
    sed 's/#.*//' "$folder/packages-left-out.txt" | xargs dpkg-query --show --showformat '${Package}\n' 2>/dev/null |
        sort -u | xargs dpkg --purge --force-depends
    mv /tmp/libmpi.so.40 "$libraries/libmpi.so.40"

    # Parts of packages. numpy's own testing module reads one file among its tests.
    cd "$packages"
    sed 's/#.*//' "$folder/files-left-out.txt" | while read -r pattern; do
        # shellcheck disable=SC2086 # patterns
        [ -z "$pattern" ] || rm -rf $pattern
    done
    find . \( -name tests -o -name test \) ! -path ./numpy/_core/tests -type d -prune -exec rm -rf {} +
    find numpy/_core/tests -mindepth 1 ! -name _natype.py ! -name __init__.py -prune -exec rm -rf {} +
    find . -path './torch/bin/*' ! -name torch_shm_manager -prune -exec rm -rf {} +
    find . -name '*.pyi' -delete
    # Character sets for iconv, which Python does not call.
    rm -rf "$libraries/gconv"
fi

rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/*.log \
    /usr/share/man/* /usr/share/info/* /usr/share/lintian "$(dirname "$packages")"/../valgrind
stdlib=$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
rm -rf "$stdlib/test" "$stdlib/pydoc_data/topics.py" "$stdlib/idlelib" "$stdlib/turtledemo"
# Never compared with its source again: layers may change time stamps.
find "$stdlib" "$(dirname "$packages")" -name __pycache__ -type d -prune -exec rm -rf {} +
python3 -m compileall -q -f --invalidation-mode unchecked-hash "$stdlib" "$(dirname "$packages")"
ldconfig
rm -f /var/cache/ldconfig/aux-cache
