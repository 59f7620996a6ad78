// SPDX-License-Identifier: Apache-2.0

// Package podsecrets gives pods of this node their service account tokens and the credentials for their images. It records all values that it has
// read or issued, so that package redact can remove them from texts.
//
// The guarantee: only a pod of this node, identified by its UID, that has not ended gets secrets, and only secrets that the API server's copy of the
// pod references. A token is bound to the pod's UID and has the audience and lifetime that a projected volume of the pod requests. It is renewed at
// 80 % of its lifetime or after 24 hours, and dropped with the pod, even if it arrives later.
//
// Note: there are no background goroutines, and nothing is read for a pod before the first request. The provider never requests secrets for a
// pod that waits, or that has no room on the node. A token is renewed when a caller requests it. Callers get the time of the next request. While the
// API server does not answer, they get the old token as long as it is valid.
package podsecrets
