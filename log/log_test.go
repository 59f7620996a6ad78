// SPDX-License-Identifier: Apache-2.0

package log_test

import (
	"context"
	"errors"
	"testing"

	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// named is a logger with a name.
type named struct {
	log.Logger
	name string
}

// setDefault assigns log.L during the test.
func setDefault(t *testing.T, l log.Logger) {
	t.Helper()
	old := log.L
	log.L = l
	t.Cleanup(func() { log.L = old })
}

func TestDefaultLoggerDiscards(t *testing.T) {
	l := log.G(t.Context())
	if l == nil {
		t.Fatal("there is no default logger")
	}
	l = l.WithField("a", 1).WithFields(log.Fields{"b": 2}).WithError(errors.New("e"))
	l.Debug("x")
	l.Infof("%d", 1)
	l.Warn(errors.New("not a string"))
	l.Fatal("the process goes on")
}

func TestAssignedDefaultIsUsed(t *testing.T) {
	want := named{name: "default"}
	setDefault(t, want)
	if got := log.G(t.Context()); got != log.Logger(want) {
		t.Errorf("G = %v, want the logger assigned to L", got)
	}
}

func TestLoggerInContextWins(t *testing.T) {
	setDefault(t, named{name: "default"})
	want := named{name: "context"}
	ctx := log.WithLogger(t.Context(), want)
	if got := log.GetLogger(ctx); got != log.Logger(want) {
		t.Errorf("GetLogger = %v, want %v", got, want)
	}
}

func TestNilLoggerKeepsContext(t *testing.T) {
	want := named{name: "context"}
	ctx := log.WithLogger(t.Context(), want)
	after := log.WithLogger(ctx, nil)
	if after != ctx {
		t.Error("WithLogger(ctx, nil) made another context")
	}
	if got := log.G(after); got != log.Logger(want) {
		t.Errorf("G = %v, want the logger of before, %v", got, want)
	}
}

func TestNilDefaultPanics(t *testing.T) {
	setDefault(t, nil)
	defer func() {
		if got := recover(); got != "default logger not initialized" {
			t.Errorf("recovered %v", got)
		}
	}()
	log.GetLogger(t.Context())
}

func TestGCanBeReplaced(t *testing.T) {
	want := named{name: "replaced"}
	old := log.G
	t.Cleanup(func() { log.G = old })
	log.G = func(context.Context) log.Logger { return want }
	if got := log.G(t.Context()); got != log.Logger(want) {
		t.Errorf("G = %v, want %v", got, want)
	}
}
