// SPDX-License-Identifier: Apache-2.0

// Package joblog reads the log files of package podjob.
//
// The guarantee: a reader gets each line of a run once and in order, even if the file is rotated during the read.
//
// Note: a followed log is polled, five times in a second.
package joblog
