// SPDX-License-Identifier: Apache-2.0

package logrus_test

import (
	"errors"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"

	"github.com/virtual-kubelet/virtual-kubelet/log"
	vklogrus "github.com/virtual-kubelet/virtual-kubelet/log/logrus"
)

func newLogger() (log.Logger, *test.Hook) {
	logger, hook := test.NewNullLogger()
	logger.SetLevel(logrus.DebugLevel)
	logger.SetReportCaller(true)
	logger.ExitFunc = func(int) {}
	return vklogrus.FromLogrus(logger.WithField("given", true)), hook
}

func TestLevelsAndMessages(t *testing.T) {
	l, hook := newLogger()
	l.Debug("a", 1)
	l.Debugf("a %d", 1)
	l.Info("b")
	l.Infof("b %d", 2)
	l.Warn(errors.New("c"))
	l.Warnf("c %d", 3)
	l.Error("d")
	l.Errorf("d %d", 4)
	l.Fatal("e")
	l.Fatalf("e %d", 5)

	type line struct {
		Level   logrus.Level
		Message string
	}
	var got []line
	for _, e := range hook.AllEntries() {
		got = append(got, line{e.Level, e.Message})
	}
	want := []line{
		{logrus.DebugLevel, "a1"}, {logrus.DebugLevel, "a 1"},
		{logrus.InfoLevel, "b"}, {logrus.InfoLevel, "b 2"},
		{logrus.WarnLevel, "c"}, {logrus.WarnLevel, "c 3"},
		{logrus.ErrorLevel, "d"}, {logrus.ErrorLevel, "d 4"},
		{logrus.FatalLevel, "e"}, {logrus.FatalLevel, "e 5"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestFieldsAreAddedNotShared(t *testing.T) {
	l, hook := newLogger()
	err := errors.New("boom")
	one := l.WithField("pod", "p")
	two := one.WithFields(log.Fields{"node": "n", "pod": "q"}).WithError(err)
	one.Info("one")
	if diff := cmp.Diff(logrus.Fields{"given": true, "pod": "p"}, hook.LastEntry().Data); diff != "" {
		t.Errorf("fields of the first logger (-want +got):\n%s", diff)
	}
	two.Info("two")
	data := hook.LastEntry().Data
	if data["pod"] != "q" || data["node"] != "n" || data[logrus.ErrorKey] != err || data["given"] != true {
		t.Errorf("fields of the second logger: %v", data)
	}
}

func TestCallerIsTheLine(t *testing.T) {
	l, hook := newLogger()
	_, _, line, _ := runtime.Caller(0)
	l.WithField("a", 1).Info("here") // one line below
	caller := hook.LastEntry().Caller
	if filepath.Base(caller.File) != "logrus_test.go" || caller.Line != line+1 {
		t.Errorf("caller is %s:%d, want logrus_test.go:%d", caller.File, caller.Line, line+1)
	}
}
