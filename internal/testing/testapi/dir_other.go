// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testapi

// parentDir returns the directory for the data of clusters: "" is the directory for temporary files.
func parentDir() string { return "" }
