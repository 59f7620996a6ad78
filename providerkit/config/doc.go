// SPDX-License-Identifier: Apache-2.0

// Package config loads the configuration of a provider: a YAML or JSON file that says its apiVersion and kind, and
// above it the environment.
//
// It promises that what is loaded is what was written: an unknown field, version or kind, a field that comes twice, and a value of
// another type are errors that name the field, its file and line, and what is known instead. A Secret is never printed, logged or
// marshalled, and one that is in a file is read again when the file changes. A field that was renamed is read by its old name too, with a warning.
//
// What surprises: an environment variable that is empty is not set, so it cannot empty a field that the file fills. Maps and lists of
// structs are set by the file alone.
package config
