// SPDX-License-Identifier: Apache-2.0

// Package hostfiles gives pods their host name, /etc/hosts and DNS settings, as a kubelet writes them.
//
// The guarantee: the files and the events equal those of a kubelet. The size of all files is bounded.
//
// Note: /etc/hosts is rewritten in place before each start of a container, because a mount refers to the inode. Changes by containers are
// lost. A pod on the network of the machine with the policy ClusterFirst gets the machine's DNS, as the API documents.
package hostfiles
