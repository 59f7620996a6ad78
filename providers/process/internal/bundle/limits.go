// SPDX-License-Identifier: Apache-2.0

package bundle

// MaxGuestMounts is the largest number of directories and files of the machine in a container of gVisor, without
// its root: the call that starts the container sends an open file for each of them, for the root and for three
// streams, and 128 at most.
const MaxGuestMounts = 128 - 1 - 3
