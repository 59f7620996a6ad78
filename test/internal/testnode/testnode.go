// SPDX-License-Identifier: Apache-2.0

// Package testnode runs nodes for tests: in the test's process, or as the built program.
//
// The guarantee: a node ends with its test, and its log is shown if the test fails.
package testnode

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	slogadapter "github.com/virtual-kubelet/virtual-kubelet/log/slog"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// Node is a [nodeutil.Node], or a [nodeutil.Fleet] of them.
type Node interface {
	Run(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
}

// Options are the options of a node. The zero value is useful.
type Options struct {
	Level  slog.Level                            // of its log
	Log    *testlog.Buffer                       // its log; by default one that is shown if the test fails
	Within func(context.Context) context.Context // makes its context; by default it is unchanged
}

// Run runs the node until the test ends, or until stop is called, which waits for the end. It is
// an error of the test if the node ends by itself. The name is for messages.
func Run(t *testing.T, name string, n Node, o Options) (stop func()) {
	t.Helper()
	said := o.Log
	if said == nil {
		said = &testlog.Buffer{}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ctx = log.WithLogger(ctx, slogadapter.FromSlog(slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: o.Level}))))
	if o.Within != nil {
		ctx = o.Within(ctx)
	}
	stop = sync.OnceFunc(func() {
		cancel()
		<-n.Done()
		if err := n.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v, want the end of its context", name, err)
		}
	})
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, said.Tail())
		}
	})
	go func() { _ = n.Run(ctx) }() // Err returns the error
	return stop
}

// Roomy gives a node enough capacity for many scheduled pods.
func Roomy(cfg *nodeutil.NodeConfig) error {
	cfg.NodeSpec.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("10k"),
		corev1.ResourceMemory:           resource.MustParse("10Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		corev1.ResourcePods:             resource.MustParse("10k"),
	}
	cfg.NodeSpec.Status.Allocatable = cfg.NodeSpec.Status.Capacity
	return nil
}

// Program returns the path of the binary virtual-kubelet: $VK_BIN, or the build two folders above the test's.
// Without a binary the test is skipped, or fails if $VK_REQUIRE_TESTAPI is 1.
func Program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("VK_BIN")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "virtual-kubelet")
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case err == nil:
		return path
	case os.Getenv("VK_REQUIRE_TESTAPI") == "1":
		t.Fatalf("this test needs the binary virtual-kubelet: %v", err)
	default:
		t.Skipf("this test needs the binary virtual-kubelet: %v; build it, or name one in VK_BIN", err)
	}
	return ""
}
