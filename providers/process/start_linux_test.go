// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/oci"
	"github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim"
)

// toStart returns a runtime whose control groups are plain directories, with a container that was not started.
// The program of the container does not exist.
func toStart(t *testing.T) (*Runtime, *container) {
	t.Helper()
	c := &container{id: "c", dir: t.TempDir(), config: &runtimeapi.ContainerConfig{}}
	c.Spec = shim.Spec{Argv: []string{"/no/such/program"}, Cgroup: shim.Cgroup{V2: "/where/it/was/before"}}
	return &Runtime{cgroups: cgroups{v2: t.TempDir()}, containers: map[string]*container{"c": c}}, c
}

// TestRecordThatCannotBeWrittenLetsNothingStart checks that a container does not start without its record, also
// on a retry: a later daemon would not find its cgroup.
func TestRecordThatCannotBeWrittenLetsNothingStart(t *testing.T) {
	r, c := toStart(t)
	before := c.Spec
	record := filepath.Join(c.dir, recordFile)
	if err := os.Mkdir(record, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.StartContainer(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), record) {
			t.Errorf("got %v", err)
		}
		if !reflect.DeepEqual(c.Spec, before) {
			t.Errorf("the container is %+v, and on disk it was %+v", c.Spec, before)
		}
	}
}

// TestStartThatNobodyWaitsForIsNone checks that a canceled start starts nothing, because no caller would know
// about the container.
func TestStartThatNobodyWaitsForIsNone(t *testing.T) {
	r, c := toStart(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.working.Lock()
	ended := make(chan error)
	go func() { ended <- r.StartContainer(ctx, "c") }()
	cancel()
	c.working.Unlock()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("StartContainer: got %v", err)
	}
	r.oci = &ociRuntime{name: IsolationGVisor, Runtime: oci.Runtime{Program: "/no/such/program", Root: t.TempDir()}, bundles: t.TempDir()}
	s := &sandbox{id: "s", dir: t.TempDir()}
	if err := r.startGuest(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("startGuest: got %v", err)
	}
	for _, dir := range []string{c.dir, s.dir, r.cgroups.v2} {
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			t.Errorf("in %s there is %v, %v", dir, made, err)
		}
	}
}
