// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"github.com/spf13/pflag"
)

// setting is one row of the table that flags, environment, file,
// `config print` and the reference are made from.
type setting struct {
	// flag is the name on the command line.
	flag string
	// field is the name in the file; "" for settings that are only flags.
	field string
	// env are environment variables.
	env []string
	// group is the heading in the reference.
	group string
	// usage says what it means. A word in back quotes names the value.
	usage string
	// bind declares the flag, with its default, on fs.
	bind func(fs *pflag.FlagSet, o *options, name, usage string)
	// alias is an older name of the flag.
	alias string
	// deprecated makes the flag work without effect: it says why.
	deprecated string
	// gone makes every use of the flag an error: it says what to do.
	gone string
}

// goneVariables are environment variables that meant something once, and
// what to use instead.
var goneVariables = map[string]string{
	"JAEGER_COLLECTOR_ENDPOINT": insteadOfExporters,
	"JAEGER_AGENT_ENDPOINT":     insteadOfExporters,
	"JAEGER_USER":               insteadOfExporters,
	"JAEGER_PASSWORD":           insteadOfExporters,
	"OCAGENT_ENDPOINT":          insteadOfExporters,
	"OCAGENT_INSECURE":          insteadOfExporters,
	"ZPAGES_PORT":               insteadOfExporters,
}

const insteadOfExporters = "traces are sent by OpenTelemetry: use --trace-endpoint"

// define declares all settings on fs.
func (o *options) define(fs *pflag.FlagSet) {
	for _, s := range settings() {
		s.bind(fs, o, s.flag, s.usage)
		f := fs.Lookup(s.flag)
		f.Hidden = s.gone != "" || s.deprecated != ""
		if s.alias != "" {
			fs.AddFlag(&pflag.Flag{Name: s.alias, Usage: s.usage, Value: f.Value, DefValue: f.DefValue, NoOptDefVal: f.NoOptDefVal, Hidden: true})
		}
	}
	o.klog.define(fs)
}
