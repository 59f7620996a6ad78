// SPDX-License-Identifier: Apache-2.0

// Package podblobs keeps pods of package podjob in a container of blobs in Azure Storage. The node and the machines of the pods share it.
//
// The guarantee: a pod runs once, even if its program is started several times, because only one run can make the blob with the claim. Only the blob
// with the bundle has secrets. A status is written after all earlier logs.
//
// Note: the node orders a stop by removing the bundle, or by metadata of the bundle if the grace period differs from the pod's own. A status
// is in the metadata of a separate blob, so one list has the statuses of all pods.
package podblobs
