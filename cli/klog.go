// SPDX-License-Identifier: Apache-2.0

package cli

import (
	stdflag "flag"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// klogPrefix begins the flags of klog, the log of the Kubernetes libraries.
const klogPrefix = "klog."

// klogFlags are the flags of klog. Only v and vmodule have an effect: where
// and how lines are written is decided once for the whole process.
type klogFlags struct{ set *stdflag.FlagSet }

func (k *klogFlags) define(fs *pflag.FlagSet) {
	k.set = stdflag.NewFlagSet("klog", stdflag.ContinueOnError)
	klog.InitFlags(k.set)
	k.set.VisitAll(func(f *stdflag.Flag) {
		p := pflag.PFlagFromGoFlag(f)
		p.Name, p.Shorthand = klogPrefix+f.Name, ""
		p.Hidden = !klogEffective(f.Name)
		fs.AddFlag(p)
	})
}

func klogEffective(name string) bool { return name == "v" || name == "vmodule" }

func (k *klogFlags) value(name string) string { return k.set.Lookup(name).Value.String() }

// warnings names the flags that were given and do nothing.
func (k *klogFlags) warnings(fs *pflag.FlagSet) []string {
	var warnings []string
	k.set.VisitAll(func(f *stdflag.Flag) {
		if fs.Changed(klogPrefix+f.Name) && !klogEffective(f.Name) {
			warnings = append(warnings, "flag --"+klogPrefix+f.Name+" has no effect: the Kubernetes libraries log as the rest does")
		}
	})
	return warnings
}
