// SPDX-License-Identifier: Apache-2.0

// Package localpath makes PersistentVolumes on the machine of a node, for claims of StorageClasses with the provisioner
// Driver, and removes those that are released.
//
// The guarantees: a claim gets a volume only when the scheduler has chosen this node for it. Names are those of the claim's UID, so
// that what a process that was killed began is found and finished by the next, and never done twice. What is in a volume is removed
// only after the API server has said, asked then, that the volume is released, is this node's and is to be deleted; the object goes
// after the directory. What cannot be made is an event about the claim. A process that stands by for another one does nothing.
//
// What surprises: all claims of the cluster are watched, as none can be selected by node. A claim that goes while its directory is made
// leaves the directory to the volume, which is made all the same, and then released.
package localpath
