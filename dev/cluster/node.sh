#!/bin/sh
# Makes the mount namespace it was started in a node's own, then becomes the node's containerd.
# usage: node.sh NODE_DIRECTORY SHARED_MEMORY_BYTES CONTAINERD
set -eu
node=$1
shared_memory=$2
containerd=$3
# Large pages where the kernel allows them for this mount, as on a machine tuned for models.
mount -t tmpfs -o "size=$shared_memory,huge=within_size" shm /dev/shm 2>/dev/null ||
    mount -t tmpfs -o "size=$shared_memory" shm /dev/shm
mount --bind "$node/log" /var/log
mount --bind "$node/cni" /var/lib/cni
mount --bind "$node/kubelet" /var/lib/kubelet
mount --make-rshared /var/lib/kubelet
mount -t tmpfs -o mode=755 run /run
mkdir /run/lock
exec "$containerd" --config "$node/containerd.toml"
