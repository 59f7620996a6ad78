// SPDX-License-Identifier: Apache-2.0

// Package volumes gives pods their volumes, as a kubelet does: it makes directories and files below one
// directory, keeps them up to date, returns the mounts for containers, and removes them.
//
// The guarantees:
//
//   - A volume that is written from the API changes at once: a version is a directory of its own, complete before the
//     link ..data moves to it. A reader sees whole files, and a reader that has opened ..data sees one version. This
//     holds through a crash.
//   - No link of a container leads out of the volume: paths of a pod are opened through os.Root, and the opened file
//     is mounted, not its name.
//   - Remove touches nothing outside of the directory of the pod, follows no link and enters no mount: it first
//     detaches a mount, without passing the unmount on to its source.
//   - Secrets and tokens are in memory, never on a disk, where the machine has a file system in memory.
//   - A volume that the node cannot provide is refused by the name of its field; nothing is left out silently.
//
// The surprise: only volumes that a container names are set up. Where this process may not mount, all volumes in
// memory share one file system: a sizeLimit is only measured there, and a subPath of a volume that is written
// from the API follows its updates.
package volumes
