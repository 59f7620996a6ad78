// SPDX-License-Identifier: Apache-2.0

// Package localpath makes PersistentVolumes on the machine of a node for claims of StorageClasses with the provisioner Driver, and removes released
// volumes.
//
// The guarantees: a claim gets a volume only after the scheduler has chosen this node for it. Names come from the UID of the claim, so the next
// process finds and completes the work of a killed process, and no volume is made twice. The content of a volume is removed only after a fresh read
// from the API server shows that the volume is released, belongs to this node and must be deleted. The object is deleted after the directory. If a
// volume cannot be made, the claim gets an event. A standby process does nothing.
//
// Note: the package watches all claims of the cluster, because claims cannot be selected by node. If a claim is deleted while its directory
// is made, the volume is still made, and then released.
package localpath
