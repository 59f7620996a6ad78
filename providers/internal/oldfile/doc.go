// SPDX-License-Identifier: Apache-2.0

// Package oldfile reads the configuration files of earlier providers: names and values in TOML, without tables.
//
// The guarantee: an unknown name, a repeated name, and a value of another type are errors with the name of the
// file.
//
// Note: a quoted number is a number, because those files quote all numbers.
package oldfile
