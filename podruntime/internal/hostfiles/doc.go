// SPDX-License-Identifier: Apache-2.0

// Package hostfiles tells pods who they are and where names are found: host name, /etc/hosts and
// the DNS settings, as a kubelet writes them.
//
// The guarantee: the same text and the same events as from a kubelet; and nothing that is read
// or written grows without bound.
//
// What surprises: /etc/hosts is written anew before each start of a container, in place, because a mounted file
// is its inode; what a container wrote there is gone then. And a pod on the network of the machine that asks for
// ClusterFirst gets the machine's DNS, as the API says.
package hostfiles
