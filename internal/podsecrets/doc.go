// SPDX-License-Identifier: Apache-2.0

// Package podsecrets gives pods of this node their service account tokens and the credentials for their images.
// It remembers every value that it read and gave, so that package redact can remove the values from texts.
//
// The guarantee: only a pod of this node, by its UID, that has not ended gets a secret, and only secrets that
// the API server's copy of the pod names. A token is bound to the pod's UID and has the audience and life that a
// projected volume of the pod asks for. It is requested again at 80 % of its life or after 24 hours, and
// forgotten with the pod, also if it arrives later.
//
// The surprise: nothing runs here, and nothing is read for a pod before the first request. The provider never
// asks for a pod that waits, or that has no room on the node. A token is renewed when a caller asks for it;
// callers are told when to ask again. While the API server does not answer, they get the old token as long as it
// is valid.
package podsecrets
