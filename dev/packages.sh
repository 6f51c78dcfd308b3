#!/bin/sh
# The Debian/Ubuntu packages that the local Kubernetes, the image builds and the tests need.
#   dev/packages.sh list      all of them
#   dev/packages.sh missing   those that are not installed
#   dev/packages.sh install   install what is missing (root)
set -eu
packages="buildah busybox-static ca-certificates containernetworking-plugins git iproute2 make mmdebstrap mount nftables openssl procps
prometheus prometheus-node-exporter python3-venv qemu-system-x86 qemu-user-static runc shellcheck util-linux"

missing() {
    for package in $packages; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q ' installed$' || printf '%s ' "$package"
    done
}

case ${1:-} in
list) echo "$packages" | tr "\n" " " ;;
missing) missing ;;
install)
    wanted=$(missing)
    [ -n "$wanted" ] || exit 0
    [ "$(id -u)" = 0 ] || {
        echo "dev/packages.sh: these packages are missing, and installing them needs root: $wanted" >&2
        exit 1
    }
    echo "Installing Debian packages: $wanted"
    # The tests start their own Prometheus: the packages' daemons are neither started now nor at the next boot.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    apt-get update -qq
    # shellcheck disable=SC2086 # a list of words
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $wanted >/dev/null
    for daemon in prometheus prometheus-node-exporter; do
        case " $wanted" in *" $daemon "*) ! command -v systemctl >/dev/null || systemctl --quiet disable "$daemon" ;; esac
    done
    ;;
*)
    echo "usage: dev/packages.sh list|missing|install" >&2
    exit 64
    ;;
esac
