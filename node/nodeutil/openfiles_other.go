// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package nodeutil

// maxOpenFiles returns how many files the process may have open, 0 if that is not known.
func maxOpenFiles() int { return 0 }
