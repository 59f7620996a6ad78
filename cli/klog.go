// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	stdflag "flag"
	stdslog "log/slog"
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// klogPrefix is the prefix of the flags of klog, the log of the Kubernetes libraries.
const klogPrefix = "klog."

// klogFlags has the flags of klog. Only v and vmodule have an effect: the output and the format of the log are
// set once for the whole process.
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

// warnings names the given flags without effect.
func (k *klogFlags) warnings(fs *pflag.FlagSet) []string {
	var warnings []string
	k.set.VisitAll(func(f *stdflag.Flag) {
		if fs.Changed(klogPrefix+f.Name) && !klogEffective(f.Name) {
			warnings = append(warnings, "flag --"+klogPrefix+f.Name+" has no effect: the Kubernetes libraries log as the rest does")
		}
	})
	return warnings
}

// current is the output of klog. The logger of klog is set once in a process, and only its handler changes: goroutines of the Kubernetes
// libraries may outlive a node for a moment, and read the logger without a lock.
var (
	current       atomic.Pointer[stdslog.Handler]
	setKlogLogger = sync.OnceFunc(func() { klog.SetSlogLogger(stdslog.New(currentHandler{})) })
)

func setKlogHandler(h stdslog.Handler) {
	current.Store(&h)
	setKlogLogger()
}

// currentHandler passes records to the handler that was set last.
type currentHandler struct{}

func (currentHandler) Enabled(ctx context.Context, level stdslog.Level) bool {
	return (*current.Load()).Enabled(ctx, level)
}

func (currentHandler) Handle(ctx context.Context, r stdslog.Record) error {
	return (*current.Load()).Handle(ctx, r)
}

func (currentHandler) WithAttrs(attrs []stdslog.Attr) stdslog.Handler {
	return (*current.Load()).WithAttrs(attrs)
}

func (currentHandler) WithGroup(name string) stdslog.Handler {
	return (*current.Load()).WithGroup(name)
}
