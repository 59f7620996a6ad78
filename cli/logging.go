// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	stdslog "log/slog"
	"strconv"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/slog"
)

// parseLevel accepts the level names of slog, and the other level names of logrus.
func parseLevel(name string) (stdslog.Level, error) {
	switch strings.ToLower(name) {
	case "trace", "debug":
		return stdslog.LevelDebug, nil
	case "info":
		return stdslog.LevelInfo, nil
	case "warn", "warning":
		return stdslog.LevelWarn, nil
	case "error", "fatal", "panic":
		return stdslog.LevelError, nil
	}
	return 0, fmt.Errorf("--log-level %q: want debug, info, warn or error", name)
}

// klogMost is the greatest verbosity for the Kubernetes libraries: from V(8) on they log the bodies of requests
// and answers, including Secrets and tokens.
const klogMost = 7

// debugVerbosity is the lowest --klog.v for debugging, by the conventions of Kubernetes. If it is set at run time, the debug lines of this
// program are shown too.
const debugVerbosity = 4

// startLogging sends all logs of this process, including the logs of the Kubernetes libraries, to w.
func (o *options) startLogging(w io.Writer) error {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return err
	}
	o.ownLevel, o.klogLevel = &stdslog.LevelVar{}, &stdslog.LevelVar{}
	o.ownLevel.Set(level)
	log.L = slog.FromSlog(stdslog.New(o.handler(w, o.ownLevel)))
	// --log-level=debug applies only to this program: --klog.v sets the verbosity of the Kubernetes libraries beyond info.
	if err := o.setKlogLevel(level, o.klog.value("v")); err != nil {
		return fmt.Errorf("--klog.v: %w", err)
	}
	setKlogHandler(o.handler(w, o.klogLevel))
	return nil
}

// setKlogLevel sets the level and the verbosity for the Kubernetes libraries: slog sees their V(n) as level -n.
func (o *options) setKlogLevel(level stdslog.Level, verbosity string) error {
	v, err := strconv.Atoi(verbosity)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a whole number from 0 on", verbosity)
	}
	level = max(level, stdslog.LevelInfo)
	if v > 0 {
		level = stdslog.Level(-min(v, klogMost))
	}
	o.klogLevel.Set(level)
	return nil
}

// setVerbosity changes the log levels at run time; 0 restores the levels of startLogging.
func (o *options) setVerbosity(verbosity string) error {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return err
	}
	if err := o.setKlogLevel(level, verbosity); err != nil {
		return err
	}
	if v, err := strconv.Atoi(verbosity); err == nil && v >= debugVerbosity {
		level = stdslog.LevelDebug
	}
	o.ownLevel.Set(level)
	log.L.WithField("verbosity", verbosity).Info("Verbosity was changed")
	return o.klog.set.Set("v", verbosity)
}

func (o *options) handler(w io.Writer, level stdslog.Leveler) stdslog.Handler {
	opts := &stdslog.HandlerOptions{Level: level, ReplaceAttr: nameFatal}
	if o.LogFormat == "json" {
		return stdslog.NewJSONHandler(w, opts)
	}
	return stdslog.NewTextHandler(w, opts)
}

// nameFatal writes FATAL for the level that slog calls ERROR+4.
func nameFatal(groups []string, a stdslog.Attr) stdslog.Attr {
	if level, ok := a.Value.Any().(stdslog.Level); ok && len(groups) == 0 && a.Key == stdslog.LevelKey && level == slog.LevelFatal {
		a.Value = stdslog.StringValue("FATAL")
	}
	return a
}
