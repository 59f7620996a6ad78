// SPDX-License-Identifier: Apache-2.0

// Package podblobs keeps pods of package podjob in a container of blobs in Azure Storage. The node and the
// machines of the pods share it.
//
// The guarantee: a pod runs once, however often its program is started, because only one run can make the blob
// with the claim. Secrets are in the blob with the bundle only. A status is written after the logs before it.
//
// The surprise: an order to stop is the removal of the bundle, or metadata of the bundle for another grace period
// than the pod's own. A status is metadata of its own blob, so that one list has the statuses of all pods.
package podblobs
