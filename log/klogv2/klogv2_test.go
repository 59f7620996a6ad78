// SPDX-License-Identifier: Apache-2.0

package klogv2_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/log/klogv2"
)

// capture sends klog to a buffer during the test, with the given flags, and returns a function that returns the output.
func capture(t *testing.T, flags map[string]string) func() string {
	t.Helper()
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	var fs flag.FlagSet
	klog.InitFlags(&fs)
	set := func(name, value string) {
		if err := fs.Set(name, value); err != nil {
			t.Fatalf("set klog flag %s: %v", name, err)
		}
	}
	set("logtostderr", "false")
	set("alsologtostderr", "false")
	set("stderrthreshold", "FATAL")
	set("one_output", "true")
	for name, value := range flags {
		set(name, value)
	}
	var buf bytes.Buffer
	klog.SetOutput(&buf)
	return func() string {
		klog.Flush()
		return buf.String()
	}
}

// header matches the prefix of a klog message: severity, time, thread, source.
var header = regexp.MustCompile(`^([IWEF])\d{4} \S+ +\d+ (\S+):(\d+)\] (.*)$`)

func parse(t *testing.T, out string) (lines [][]string) {
	t.Helper()
	for s := range strings.Lines(out) {
		m := header.FindStringSubmatch(strings.TrimSpace(s))
		if m == nil {
			t.Fatalf("not a klog line: %q", s)
		}
		lines = append(lines, m[1:])
	}
	return lines
}

func TestSeverityMessageAndSource(t *testing.T) {
	out := capture(t, map[string]string{"v": "4"})
	l := klogv2.New(nil)
	_, _, here, _ := runtime.Caller(0)
	l.Debug("a", 1)
	l.Debugf("a %d", 1)
	l.Info("b")
	l.Infof("b %d", 2)
	l.Warn(errors.New("c"))
	l.Warnf("c %d", 3)
	l.Error("100%")
	l.Errorf("d %d", 4)
	want := [][]string{
		{"I", "a1"}, {"I", "a 1"}, {"I", "b"}, {"I", "b 2"}, {"W", "c"}, {"W", "c 3"}, {"E", "100%"}, {"E", "d 4"},
	}
	got := parse(t, out())
	if len(got) != len(want) {
		t.Fatalf("got %d lines, want %d: %q", len(got), len(want), got)
	}
	for i, w := range want {
		full := []string{w[0], "klogv2_test.go", fmt.Sprint(here + 1 + i), w[1]}
		if diff := cmp.Diff(full, got[i]); diff != "" {
			t.Errorf("line %d (-want +got):\n%s", i, diff)
		}
	}
}

func TestDebugNeedsVerbosity4(t *testing.T) {
	out := capture(t, map[string]string{"v": "3"})
	l := klogv2.New(nil)
	l.Debug("hidden")
	l.Debugf("%s", "hidden")
	if got := out(); got != "" {
		t.Errorf("at -v=3 debug wrote %q", got)
	}
}

func TestVmoduleNamesTheCallingFile(t *testing.T) {
	out := capture(t, map[string]string{"v": "0", "vmodule": "klogv2_test=4"})
	klogv2.New(nil).Debug("shown")
	if got := parse(t, out()); len(got) != 1 || got[0][3] != "shown" {
		t.Errorf("with -vmodule for this file got %q", got)
	}
}

func TestFieldsFollowSorted(t *testing.T) {
	out := capture(t, nil)
	given := log.Fields{"pod": "p"}
	l := klogv2.New(given)
	given["pod"] = "changed later"
	child := l.WithField("node", "n").WithError(errors.New("boom")).WithFields(log.Fields{"a": 1})
	l.Info("one")
	child.Infof("%s", "two 100%")
	got := parse(t, out())
	if got[0][3] != "one [pod=p]" || got[1][3] != "two 100% [a=1 err=boom node=n pod=p]" {
		t.Errorf("got %q", got)
	}
}

func TestFatalEndsTheProcess(t *testing.T) {
	out := capture(t, nil)
	exit := klog.OsExit
	t.Cleanup(func() { klog.OsExit = exit })
	var codes []int
	klog.OsExit = func(code int) { codes = append(codes, code) }
	l := klogv2.New(nil)
	l.Fatal("first")
	l.Fatalf("%s", "second")
	if len(codes) != 2 || codes[0] == 0 {
		t.Errorf("exit codes %v, want two that are not 0", codes)
	}
	if text := out(); !strings.Contains(text, "] first") || !strings.Contains(text, "] second") {
		t.Errorf("the messages are not in %q", text)
	}
}
