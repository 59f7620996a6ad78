// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// greeting is the backend in memory with commands that print hello.
type greeting struct{ notifying }

func (greeting) RunInContainer(_ context.Context, _, _, _ string, _ []string, attach api.AttachIO) error {
	_, err := fmt.Fprint(attach.Stdout(), "hello")
	return err
}

// TestThousandExecs runs commands one after the other, through the API server. It is not parallel: the goroutines
// and files of other tests would be counted.
func TestThousandExecs(t *testing.T) {
	w := newWorld(t)
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return greeting{notifying{polled{Backend: w.backend, changed: w.changed}}}, nil, nil
	}
	credentials := w.api.NodeCredentials(t, w.nodeName)
	mux := http.NewServeMux()
	w.opts = append(w.opts,
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), nodeutil.WithCAFromPath(credentials.CAFile)),
		nodeutil.AttachProviderRoutes(mux),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr = mux, "127.0.0.1:0"
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			return nil
		})
	w.start()
	w.startPod(w.pod("web"))

	w.execs(10) // creates goroutines and files that the process keeps
	before := used(t)
	w.execs(1000)
	deadline := time.After(patience)
	for {
		after := used(t)
		if after.goroutines <= before.goroutines+5 && after.files <= before.files+3 && after.bytes <= before.bytes+8<<20 {
			t.Logf("before: %+v, after 1000 execs: %+v", before, after)
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-deadline:
			t.Fatalf("after 1000 execs the process has %+v, before it had %+v", after, before)
		}
	}
}

// execs runs n commands, over each protocol in turn.
func (w *world) execs(n int) {
	w.Helper()
	url := w.client().CoreV1().RESTClient().Post().Namespace(w.namespace).Resource("pods").Name("web").SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: "main", Command: []string{"hello"}, Stdout: true}, scheme.ParameterCodec).URL()
	for i := range n {
		executor, err := remotecommand.NewSPDYExecutor(w.api.Config, http.MethodPost, url)
		if i%2 == 0 {
			executor, err = remotecommand.NewWebSocketExecutor(w.api.Config, http.MethodGet, url.String())
		}
		if err != nil {
			w.Fatal(err)
		}
		var out bytes.Buffer
		if err := executor.StreamWithContext(w.Context(), remotecommand.StreamOptions{Stdout: &out}); err != nil || out.String() != "hello" {
			w.Fatalf("exec %d: got %q, %v", i, out.String(), err)
		}
	}
}

// usage counts the goroutines and open files of this process, in which the node runs.
type usage struct {
	goroutines, files int
	bytes             int64
}

func used(t *testing.T) usage {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("the files of this process cannot be counted: %v", err)
	}
	return usage{runtime.NumGoroutine(), len(files), int64(m.HeapAlloc)}
}
