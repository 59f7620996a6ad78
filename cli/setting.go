// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"

	"github.com/spf13/pflag"
)

// setting is one row of the table behind flags, environment, file, `config print` and the reference.
type setting struct {
	// flag is the name on the command line.
	flag string
	// field is the name in the file; "" for settings that are only flags.
	field string
	// env are environment variables.
	env []string
	// group is the heading in the reference.
	group string
	// usage describes the setting. A word in back quotes is the placeholder for the value.
	usage string
	// bind declares the flag, with its default, on fs.
	bind func(fs *pflag.FlagSet, o *options, name, usage string)
}

// define declares all settings on fs, and their old names in other programs. It declares a provider's old flags only if the program has
// this provider: another program may use the same flag for something else.
func (o *options) define(fs *pflag.FlagSet, providers ...Provider) {
	for _, s := range settings() {
		s.bind(fs, o, s.flag, s.usage)
	}
	for _, n := range oldNames {
		if n.provider == "" || slices.ContainsFunc(providers, func(p Provider) bool { return p.Name == n.provider }) {
			n.define(fs)
		}
	}
	o.klog.define(fs)
}
