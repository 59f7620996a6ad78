// SPDX-License-Identifier: Apache-2.0

// Package trustbundles reads the ClusterTrustBundles that volumes of pods select.
//
// The guarantees: the result has certificates only, each once, without comments and headers. Their order has no meaning, and stays the same while the
// certificates do. The package sends requests only for the selections of pods' volumes, at a limited rate for each selection, independently of the
// number of pods. While the API server does not answer, callers get the last answer, as from a kubelet. "Does not exist" and "could not be read" are
// different answers.
//
// Note: there are no background goroutines and no watches: a caller sees a change up to 30 s later, when it asks again. A selection without
// callers is dropped.
package trustbundles
