// SPDX-License-Identifier: Apache-2.0

// Package capability declares which features of pods a backend supports, and finds the fields of a pod that need missing features.
//
// The guarantee: the declaration of a provider is one table. The node, the support table in the documentation, and `virtual-kubelet check` all use
// it, so they never disagree. A pod with an undeclared feature is refused, with the path of each such field. A declaration has two features by
// default: see Has.
//
// Note: a provider without a declaration gets every pod, as before. A field without a feature in the table of this package is ignored.
package capability
