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

// parseLevel knows the levels of slog, and the names that logrus has for others.
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

// klogMost is the most that the Kubernetes libraries are let say: from V(8) on they show the bodies of
// requests and answers, and with them Secrets and tokens.
const klogMost = 7

// startLogging sends everything that is logged in this process, also by the
// Kubernetes libraries, to w.
func (o *options) startLogging(w io.Writer) error {
	level, err := parseLevel(o.LogLevel)
	if err != nil {
		return err
	}
	log.L = slog.FromSlog(stdslog.New(o.handler(w, level)))
	// --log-level=debug is about this program: what the Kubernetes libraries say
	// beyond info is chosen by --klog.v. Their V(n) arrives at level -n.
	verbosity, err := strconv.Atoi(o.klog.value("v"))
	if err != nil {
		return fmt.Errorf("--klog.v: %w", err)
	}
	klogLevel := max(level, stdslog.LevelInfo)
	if verbosity > 0 {
		klogLevel = stdslog.Level(-min(verbosity, klogMost))
	}
	setKlogHandler(o.handler(w, klogLevel))
	return nil
}

func (o *options) handler(w io.Writer, level stdslog.Level) stdslog.Handler {
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
