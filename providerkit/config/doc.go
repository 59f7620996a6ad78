// SPDX-License-Identifier: Apache-2.0

// Package config loads the configuration of a provider: a YAML or JSON file with apiVersion and kind, overridden
// by the environment.
//
// The guarantee: it loads exactly the written configuration. An unknown field, version or kind, a repeated
// field, and a value of another type are errors that name the field, its file and line, and the known
// alternatives. A Secret is never printed, logged or marshalled, and a Secret in a file is read again when the
// file changes. A renamed field is also read by its old name, with a warning.
//
// Note: an empty environment variable counts as unset, so it cannot empty a field of the file. Only the
// file sets maps and lists of structs.
package config
