// SPDX-License-Identifier: Apache-2.0

package bundle

// MaxGuestMounts is how many directories and files of the machine a container of gVisor may have besides its root: the call that starts it
// sends an open file for each of them, for the root and for three streams, and 128 at most.
const MaxGuestMounts = 128 - 1 - 3
