// SPDX-License-Identifier: Apache-2.0

// Package podcgroup makes the cgroups of pods: a tree as that of a kubelet, with the groups burstable and besteffort, and a group for
// each pod, in which the container runtime makes those of its containers. What a pod may use as a whole, also in processes, is
// limited there.
//
// The guarantee: nothing is touched that is not below the tree, no process is moved, and what a pod has left is found by the name of
// its group, whoever made it.
//
// What surprises: a group is in every hierarchy in which a runtime may have made it, also where nothing is limited. Files
// of controllers that are not there are left out.
package podcgroup
