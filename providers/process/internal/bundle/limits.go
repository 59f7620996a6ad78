// SPDX-License-Identifier: Apache-2.0

package bundle

// MaxGuestMounts is the maximum number of mounts of a gVisor container, without its root. To start the container,
// runsc sends a file descriptor for each mount, for the root and for three streams, and at most 128 in all.
const MaxGuestMounts = 128 - 1 - 3
