// SPDX-License-Identifier: Apache-2.0

// Package trustbundles reads the ClusterTrustBundles that volumes of pods select.
//
// The guarantees: what is returned has certificates only, each once, without comments and headers, in an order that stays
// the same while the certificates do, and means nothing. The API server is asked for what a pod's volume selects,
// at most once in a while for each selection, however many pods have it. While it does not answer, what was read
// last is served, as a kubelet does. What does not exist and what could not be read are different answers.
//
// What surprises: nothing runs here, and nothing is watched: a change is seen by who asks again, up to 30 s
// later. Who is not asked for is forgotten.
package trustbundles
