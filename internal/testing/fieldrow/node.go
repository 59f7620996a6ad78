// SPDX-License-Identifier: Apache-2.0

package fieldrow

// node is issues and monitoring of a node in a cluster.
var node = []Row{}
