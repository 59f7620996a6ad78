// SPDX-License-Identifier: Apache-2.0

// Package podcgroup makes the cgroups of pods: a tree like a kubelet's, with the groups burstable and
// besteffort, and a group for each pod. The container runtime makes the groups of containers in the group of
// their pod. The limits of a pod as a whole, including its number of processes, are kept there.
//
// The guarantee: nothing outside of the tree is changed, and no process is moved. The remains of a pod are found
// by the name of its group, whichever program made them.
//
// The surprise: a group is in every hierarchy in which a runtime may have made it, including hierarchies without
// limits. Files of missing controllers are left out.
package podcgroup
