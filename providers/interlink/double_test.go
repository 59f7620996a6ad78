// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// startDouble starts a double of interLink's own API server, for machines where that is not built. The double
// forwards requests, and remembers statuses for ever. It asks the plugin about pods that run or wait, and about
// pods that it does not remember. It answers 404 with the plugin's message, in words of its own and escaped as
// HTML (interlink-hq/interLink f632175, pkg/interlink/api).
func startDouble(t *testing.T, dir, sidecar string) (url string, stop func()) {
	t.Helper()
	d := &double{sidecar: socketClient(sidecar[len("unix://"):]), cache: map[string]wire.PodStatus{}}
	socket := filepath.Join(dir, "api")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.Serve(l) }()
	stop = func() { s.Close() }
	t.Cleanup(stop)
	return "unix://" + socket, stop
}

func socketClient(socket string) *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
}

type double struct {
	sidecar *http.Client
	mu      sync.Mutex
	cache   map[string]wire.PodStatus
}

// forward sends a request to the plugin, and passes a refusal to the caller.
func (d *double) forward(w http.ResponseWriter, r *http.Request, method, path string, body []byte) *http.Response {
	req, _ := http.NewRequest(method, "http://plugin"+path, bytes.NewReader(body))
	req.Header.Set(wire.HeaderSession, r.Header.Get(wire.HeaderSession))
	resp, err := d.sidecar.Do(req)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		words, _ := io.ReadAll(resp.Body)
		w.WriteHeader(resp.StatusCode)
		said := fmt.Sprintf("HTTP InterLink session %s:  call exit status: 500. Body: %s", r.Header.Get(wire.HeaderSession), words)
		_, _ = io.WriteString(w, html.EscapeString(said))
		return nil
	}
	return resp
}

// pass copies an answer unchanged.
func pass(w http.ResponseWriter, resp *http.Response) {
	if resp == nil {
		return
	}
	defer resp.Body.Close()
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	buffer := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buffer)
		if _, wrong := w.Write(buffer[:n]); err != nil || wrong != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// ServeHTTP implements http.Handler.
func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch r.URL.Path {
	case wire.PathCreate:
		var in wire.Create
		if json.Unmarshal(body, &in) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		out := wire.Retrieved{Pod: in.Pod}
		for _, c := range append(in.Pod.Spec.InitContainers, in.Pod.Spec.Containers...) {
			out.Containers = append(out.Containers, retrieved(in, c))
		}
		body, _ = json.Marshal(out)
		pass(w, d.forward(w, r, http.MethodPost, wire.PathCreate, body))
	case wire.PathDelete:
		var pod corev1.Pod
		_ = json.Unmarshal(body, &pod)
		d.mu.Lock()
		delete(d.cache, string(pod.UID))
		d.mu.Unlock()
		pass(w, d.forward(w, r, http.MethodPost, wire.PathDelete, body))
	case wire.PathLogs:
		pass(w, d.forward(w, r, http.MethodGet, wire.PathLogs, body))
	case wire.PathPing:
		pass(w, d.forward(w, r, http.MethodGet, wire.PathStatus, []byte("[]")))
	case wire.PathUpdateCache:
		d.mu.Lock()
		delete(d.cache, string(body))
		d.mu.Unlock()
	case wire.PathStatus:
		d.status(w, r, body)
	}
}

func (d *double) status(w http.ResponseWriter, r *http.Request, body []byte) {
	var asked, open []corev1.Pod
	_ = json.Unmarshal(body, &asked)
	d.mu.Lock()
	for _, p := range asked {
		if _, cached := d.cache[string(p.UID)]; !cached || p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodPending {
			open = append(open, p)
		}
	}
	d.mu.Unlock()
	var said, out []wire.PodStatus
	if len(open) > 0 {
		body, _ = json.Marshal(open)
		resp := d.forward(w, r, http.MethodGet, wire.PathStatus, body)
		if resp == nil {
			return
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(&said)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range said {
		d.cache[s.UID] = s
	}
	for _, p := range asked {
		if s, ok := d.cache[string(p.UID)]; ok {
			out = append(out, s)
		}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// forgetAll drops all remembered statuses, as a restart does.
func (d *double) forgetAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.cache)
}

// retrieved returns the objects of the pod that a container mounts.
func retrieved(in wire.Create, c corev1.Container) wire.Container {
	out := wire.Container{Name: c.Name}
	for _, m := range c.VolumeMounts {
		for _, v := range in.Pod.Spec.Volumes {
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				for _, o := range in.ConfigMaps {
					if o.Name == v.ConfigMap.Name {
						out.ConfigMaps = append(out.ConfigMaps, o)
					}
				}
			case v.Secret != nil:
				for _, o := range in.Secrets {
					if o.Name == v.Secret.SecretName {
						out.Secrets = append(out.Secrets, o)
					}
				}
			case v.Projected != nil:
				for _, o := range in.Projected {
					if o.Name == v.Name {
						out.Projected = append(out.Projected, o)
					}
				}
			}
		}
	}
	return out
}
