// SPDX-License-Identifier: Apache-2.0

// Package capability says which features of pods a backend has, and which fields of a pod need a missing
// feature.
//
// The guarantee: the declaration of a provider is one table. The node admits pods by it, the table of support in
// the documentation comes from it, and `virtual-kubelet check` answers by it, so the three never disagree. A pod
// that asks for an undeclared feature is refused, with the path of each such field. Has names two features that
// a declaration has without naming them.
//
// The surprise: a provider without a declaration gets every pod, as before. And a field without a feature in the
// table here is ignored.
package capability
