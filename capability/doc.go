// SPDX-License-Identifier: Apache-2.0

// Package capability declares the features of pods at a backend, and finds the fields of a pod for missing
// features.
//
// The guarantee: the declaration of a provider is one table. The node admits pods by it, the table of support in
// the documentation comes from it, and `virtual-kubelet check` answers by it, so the three never disagree. A pod
// with an undeclared feature is refused, with the path of each such field. A declaration has two features
// without naming them; see Has.
//
// The surprise: a provider without a declaration gets every pod, as before. And a field without a feature in the
// table here is ignored.
package capability
