// SPDX-License-Identifier: Apache-2.0

// Package joblog reads the logs that package podjob writes, where they are files.
//
// The guarantee: a reader gets each line of a run once and in its order, also of a file that is rotated while it is read.
//
// What surprises: a log that is followed is looked at, five times in a second.
package joblog
