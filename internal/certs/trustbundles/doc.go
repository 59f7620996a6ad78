// SPDX-License-Identifier: Apache-2.0

// Package trustbundles reads the ClusterTrustBundles that volumes of pods select.
//
// The guarantees: the result has certificates only, each once, without comments and headers. Their order has no
// meaning, and stays the same while the certificates do. The package sends requests for the selections of pods'
// volumes alone, at most once in a while for each selection, for any number of pods. While the API server does
// not answer, callers get the last answer, as from a kubelet. "Does not exist" and "could not be read" are
// different answers.
//
// The surprise: nothing runs here, and nothing is watched: a caller sees a change up to 30 s later, when it asks
// again. A selection without callers is forgotten.
package trustbundles
