// SPDX-License-Identifier: Apache-2.0

// Package podcgroup makes the cgroups of pods: a tree like a kubelet's, with the groups burstable and besteffort, and a group for each pod. The
// container runtime makes the groups of containers inside the group of their pod. The group of a pod enforces the limits of the whole pod, including
// its number of processes.
//
// The guarantee: nothing outside of the tree is changed, and no process is moved. The leftovers of a pod are found by the name of its group,
// independently of the program that made them.
//
// Note: a group is in every hierarchy in which a runtime may have made it, including hierarchies without limits. Files of missing controllers
// are skipped.
package podcgroup
