// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package testapi

// parentDir is where clusters have their data: "" is the directory for temporary files.
func parentDir() string { return "" }
