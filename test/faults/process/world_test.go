// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/backend"
	"github.com/virtual-kubelet/virtual-kubelet/test/faults/internal/daemon"
)

// patience is the time limit for every wait. It is generous, because the machine may be busy with other work.
const patience = 4 * time.Minute

// world is the environment of one test.
type world struct {
	*testing.T
	api       *testapi.API
	namespace string
	node      string
	nodes     []string // of the pods, where the daemons share several; else they are on node
	dir       string   // for sockets, whose paths must be short
	flags     daemon.Flags
	records   *records
	backend   *backend.Backend
	children  atomic.Int64  // how many there were
	isolate   bool          // each daemon has a PID namespace: others cannot see that it has ended
	longest   time.Duration // time limit for a step of a pod in the churn, if that is more than patience
	gently    bool          // churn without deletions by force, which need a daemon that lives for a while
}

// quick are the times of a fast backend.
var quick = backend.Times{Create: 20 * time.Millisecond, Start: 50 * time.Millisecond, Stop: 150 * time.Millisecond}

// newWorld returns a world in the shared cluster.
func newWorld(t *testing.T, times backend.Times) *world {
	return newWorldIn(t, testapi.Start(t), times)
}

func newWorldIn(t *testing.T, api *testapi.API, times backend.Times) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "vk-fault-") //nolint:usetesting // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := &world{T: t, api: api, namespace: api.Namespace(t), node: api.NodeName(t), dir: dir}
	credentials := api.NodeCredentials(t, w.node)
	w.flags = daemon.Flags{
		Kubeconfig: credentials.Kubeconfig, NodeName: w.node, Socket: filepath.Join(dir, "backend"),
		CertFile: credentials.CertFile, KeyFile: credentials.KeyFile, CAFile: credentials.CAFile,
	}
	w.records = newRecords()
	w.backend = backend.New(times, w.records.entry)
	server, err := w.backend.Serve(w.flags.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.backend.Close()
		_ = server.Close()
	})
	w.follow()
	return w
}

// nodeOf returns the node of the nth pod.
func (w *world) nodeOf(n int) string {
	if len(w.nodes) == 0 {
		return w.node
	}
	return w.nodes[n%len(w.nodes)]
}

// pods returns an administrator's client for the pods of the test.
func (w *world) pods() corev1client.PodInterface { return w.api.Client.CoreV1().Pods(w.namespace) }

// await calls done at each change of the records and returns when done returns true.
func (w *world) await(what string, done func() bool) {
	w.Helper()
	w.awaitUnless(nil, what, done)
}

// awaitUnless is await, but also returns when other is closed.
func (w *world) awaitUnless(other <-chan struct{}, what string, done func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	for {
		changed := w.records.next()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-other:
			return
		case <-ctx.Done():
			w.Fatalf("wait until %s: %v; %s", what, context.Cause(ctx), w.records.describe())
		}
	}
}
