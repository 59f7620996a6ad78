// SPDX-License-Identifier: Apache-2.0

// Package hostfiles gives pods their host name, /etc/hosts and DNS settings, as a kubelet writes them.
//
// The guarantee: the text and the events are the same as a kubelet's. Nothing that is read or written grows
// without bound.
//
// The surprise: /etc/hosts is written again before each start of a container, in place, because a mounted file
// is its inode. A container's own changes are lost then. A pod on the network of the machine that asks for
// ClusterFirst gets the machine's DNS, as the API says.
package hostfiles
