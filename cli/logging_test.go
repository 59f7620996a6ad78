// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

func TestLogging(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	for _, tc := range []struct {
		name string
		args []string
		want []string
	}{
		{"default", nil, []string{"INFO ours", "ERROR ours", "FATAL ours", "INFO theirs"}},
		{"debug is about our own lines", []string{"--log-level=debug"}, []string{"DEBUG ours", "INFO ours", "ERROR ours", "FATAL ours", "INFO theirs"}},
		{"errors", []string{"--log-level=error"}, []string{"ERROR ours", "FATAL ours"}},
		{"klog", []string{"--log-level=error", "--klog.v=2"}, []string{"ERROR ours", "FATAL ours", "INFO theirs", "DEBUG+2 theirs in detail"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := resolveWith(t, append(tc.args, "--disable-kubelet-api", "--log-format=json"), nil, "")
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := r.startLogging(&out); err != nil {
				t.Fatal(err)
			}
			log.L.Debug("ours")
			log.L.Info("ours")
			log.L.Error("ours")
			log.L.Fatal("ours")
			klog.InfoS("theirs")
			klog.V(2).InfoS("theirs in detail")
			var got []string
			for line := range strings.Lines(out.String()) {
				var l struct{ Level, Msg string }
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				got = append(got, l.Level+" "+l.Msg)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSecurityD1KubernetesLibrariesDoNotLogBodies asks for more than 7, because client-go then logs response bodies.
func TestSecurityD1KubernetesLibrariesDoNotLogBodies(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	r, err := resolveWith(t, []string{"--klog.v=10", "--disable-kubelet-api", "--log-level=debug"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = resolveWith(t, []string{"--klog.v=0", "--disable-kubelet-api"}, nil, "") }()
	var out bytes.Buffer
	if err := r.startLogging(&out); err != nil {
		t.Fatal(err)
	}
	for level := range klog.Level(11) {
		klog.V(level).InfoS("body", "level", level)
	}
	if got := out.String(); !strings.Contains(got, "level=7\n") || strings.Contains(got, "level=8\n") || strings.Contains(got, "level=10\n") {
		t.Errorf("got %s\nwant what is said up to level 7", got)
	}
}

// TestVerbosityChangesAtRunTime holds that the program's own debug lines appear from verbosity 4 on, and that 0 restores the start
// settings.
func TestVerbosityChangesAtRunTime(t *testing.T) {
	defer func(l log.Logger) { log.L = l }(log.L)
	r, err := resolveWith(t, []string{"--disable-kubelet-api"}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.startLogging(&out); err != nil {
		t.Fatal(err)
	}
	logger := log.L.WithField("made", "before")
	for _, tc := range []struct{ verbosity, want string }{{"0", ""}, {"2", "theirs2"}, {"4", "ours theirs2"}, {"99", "ours theirs2 theirs7"}, {"0", ""}} {
		if err := r.setVerbosity(tc.verbosity); err != nil {
			t.Fatal(err)
		}
		out.Reset()
		logger.Debug("ours")
		klog.V(2).InfoS("theirs2")
		klog.V(7).InfoS("theirs7")
		klog.V(8).InfoS("theirs8")
		var got []string
		for line := range strings.Lines(out.String()) {
			_, after, _ := strings.Cut(line, "msg=")
			got = append(got, strings.Fields(after)[0])
		}
		if said := strings.Join(got, " "); said != tc.want {
			t.Errorf("-v=%s: got %q, want %q", tc.verbosity, said, tc.want)
		}
	}
	for _, wrong := range []string{"", "x", "-1"} {
		if err := r.setVerbosity(wrong); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
