// SPDX-License-Identifier: Apache-2.0

// Package volumes gives pods their volumes, as a kubelet does: it makes directories and files below one directory, keeps them up to date, returns the
// mounts for containers, and removes them.
//
// The guarantees:
//
//   - A volume that is written from the API changes at once: each version is a separate directory, which is complete before the link ..data points to
//     it. A reader sees complete files. A reader that has opened ..data sees one version, even after a crash.
//   - No link of a container leads out of the volume: paths of a pod are opened through os.Root, and the opened file is mounted, not its name.
//   - Remove touches nothing outside of the directory of the pod, follows no link and enters no mount: it first detaches a mount, without propagating
//     the unmount to its source.
//   - If the machine has a file system in memory, secrets and tokens are never on a disk.
//   - A volume that the node cannot provide is refused with the name of its field, never silently omitted.
//
// Note: only volumes that a container mounts are set up. If this process may not mount, all volumes in memory share one file system: a
// sizeLimit is then only checked by measurements, and a subPath of a volume that is written from the API follows its updates.
package volumes
