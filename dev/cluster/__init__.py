"""A real Kubernetes on one Debian or Ubuntu machine, without a container engine or a registry.

`python -m dev.cluster up` builds etcd, the control plane, kubelet, containerd and CoreDNS from pinned Go modules and
starts them with as many nodes as asked for. Everything lives in a network namespace and a cgroup of the cluster's own,
which is also how `down` finds all of it again.
"""
