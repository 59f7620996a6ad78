// SPDX-License-Identifier: Apache-2.0

// Package oldfile reads the configuration files that earlier providers have: names and values in TOML, without tables.
//
// The guarantee: a name that is not known, a name that comes twice, and a value of another type are errors that name the file.
//
// What surprises: a quoted number is a number, as those files quote all of them.
package oldfile
