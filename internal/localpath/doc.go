// SPDX-License-Identifier: Apache-2.0

// Package localpath makes PersistentVolumes on the machine of a node for claims of StorageClasses with the
// provisioner Driver, and removes released volumes.
//
// The guarantees: a claim gets a volume only after the scheduler has chosen this node for it. Names come from
// the UID of the claim, so the next process finds and completes the work of a killed process, and nothing
// happens twice. The content of a volume is removed only after a fresh answer of the API server says that the
// volume is released, belongs to this node and is to be deleted; the object goes after the directory. A volume
// that cannot be made leads to an event of the claim. A standby process does nothing.
//
// The surprise: the package watches all claims of the cluster, because claims cannot be selected by node. If a
// claim is deleted while its directory is made, the volume is made all the same, and then released.
package localpath
