// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package nodeutil

// maxOpenFiles returns the limit of open files of the process, or 0 if the limit is unknown.
func maxOpenFiles() int { return 0 }
