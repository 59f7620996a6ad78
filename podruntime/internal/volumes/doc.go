// SPDX-License-Identifier: Apache-2.0

// Package volumes gives pods their volumes, as a kubelet does: it makes directories and files
// below one directory, keeps them up to date, says how they are mounted into containers,
// and removes them.
//
// The guarantees:
//
//   - A volume that is written from the API changes at once: a version is a directory of its own, whole before the
//     link ..data is moved to it. A reader sees whole files, and who has opened ..data sees one version. That
//     holds through a crash.
//   - No link that a container made leads anything here out of the volume: what is named by a pod is opened
//     through os.Root, and what is mounted is what was opened, not what has its name by then.
//   - Remove touches nothing outside of the directory of the pod, follows no link and enters no mount: a mount
//     is cut off first, without that being passed on to where it came from.
//   - Secrets and tokens are in memory, never on a disk, where the machine has a file system in memory.
//   - A volume that cannot be given is refused by the name of its field; nothing is left out silently.
//
// What surprises: only volumes that a container names are set up. Where nothing may be mounted, all
// volumes in memory share one file system, so a sizeLimit there is only measured; and a
// subPath of a volume that is written from the API then follows its updates.
package volumes
