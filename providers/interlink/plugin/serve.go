// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/log"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providers/interlink/internal/wire"
)

// maxBody is the maximum size of a request. An object of an API server has at most some 1.5 MiB.
const maxBody = 64 << 20

// server answers an interLink API server.
type server struct {
	pods *pods

	mu   sync.Mutex
	node *corev1.Node // guarded by mu; the capacity of the provider
}

// handler serves the paths of a plugin. The description of the protocol uses POST, programs use GET and DELETE;
// the plugin answers both.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		wire.PathCreate: answered(s.create), wire.PathDelete: answered(s.remove), wire.PathStatus: answered(s.status), wire.PathLogs: s.logs, wire.PathSystemInfo: answered(s.info),
		wire.PathPing: answered(s.info), wire.PathUpdateCache: s.forget, // paths of an API server: a virtual node may connect directly
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			ctx := log.WithLogger(r.Context(), log.G(r.Context()).WithField("session", r.Header.Get(wire.HeaderSession)))
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			if !allowed(path, r.Method) {
				http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
				return
			}
			if err := h(w, r.WithContext(ctx)); err != nil {
				log.G(ctx).WithError(err).Warn("Refused: " + path)
				http.Error(w, err.Error(), code(err))
			}
		})
	}
	return mux
}

func allowed(path, method string) bool {
	switch method {
	case http.MethodPost:
		return true
	case http.MethodGet:
		return path == wire.PathStatus || path == wire.PathLogs || path == wire.PathSystemInfo
	case http.MethodDelete:
		return path == wire.PathDelete
	}
	return false
}

// code returns the HTTP status for an error. The API server passes the status on to the virtual node.
func code(err error) int {
	switch {
	case errdefs.IsInvalidInput(err):
		return http.StatusUnprocessableEntity
	case errdefs.IsNotFound(err):
		return http.StatusNotFound
	case errors.As(err, &unmade{}):
		return http.StatusConflict
	}
	return http.StatusInternalServerError
}

// answered returns a handler that sends the result of do in JSON.
func answered(do func(*http.Request) (any, error)) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		result, err := do(r)
		if err != nil {
			return err
		}
		data, err := json.Marshal(result)
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data) // Write fails when the caller has gone
		return nil
	}
}

func (s *server) create(r *http.Request) (any, error) {
	var raw json.RawMessage
	if err := decode(r, &raw); err != nil {
		return nil, err
	}
	in, err := submitted(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.URL.Path, err)
	}
	return s.pods.create(r.Context(), in)
}

func (s *server) remove(r *http.Request) (any, error) {
	pod := &corev1.Pod{}
	if err := decode(r, pod); err != nil {
		return nil, err
	}
	return s.pods.remove(r.Context(), pod)
}

// status returns the states of pods. A request for no pods is a ping, and the API server passes the answer on.
func (s *server) status(r *http.Request) (any, error) {
	var asked []*corev1.Pod
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	if len(asked) == 0 {
		return s.info(r)
	}
	if _, reports := s.pods.provider.(node.PodNotifier); !reports {
		if err := s.pods.refresh(r.Context()); err != nil {
			return nil, err
		}
	}
	if err := s.pods.unsure(asked); err != nil {
		return nil, err
	}
	return s.pods.statuses(asked), nil
}

// info returns the resources of the provider, or the reason why they are unavailable now.
func (s *server) info(r *http.Request) (any, error) {
	if p, ok := s.pods.provider.(node.NodeProvider); ok {
		if err := p.Ping(r.Context()); err != nil {
			return nil, fmt.Errorf("provider %s: %w", s.pods.runner, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return wire.Ping{Status: "ok", Resources: resources(s.node.Status.Allocatable)}, nil
}

// forget does nothing: the plugin reports the current state and remembers no answers.
func (*server) forget(http.ResponseWriter, *http.Request) error { return nil }

// resources converts the resources of a node to those of the protocol.
func resources(list corev1.ResourceList) *wire.Resources {
	r := &wire.Resources{}
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU:
			r.CPU = quantity.String()
		case corev1.ResourceMemory:
			r.Memory = quantity.String()
		case corev1.ResourcePods:
			r.Pods = quantity.String()
		default:
			if strings.Contains(string(name), "/") { // storage and huge pages are no devices
				r.Accelerators = append(r.Accelerators, wire.Accelerator{ResourceType: string(name), Available: wire.Quantity(quantity.String())})
			}
		}
	}
	return r
}

// offered records the node with the resources of the provider.
func (s *server) offered(n *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = n.DeepCopy()
}

// serve answers until ctx ends.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	closed := make(chan error, 1)
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err := s.Shutdown(bounded)
		if err != nil { // a client still reads a log
			err = s.Close()
		}
		closed <- err
	})()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-closed
}

// decode reads a body. Its error does not quote the body.
func decode(r *http.Request, to any) error {
	if err := json.NewDecoder(r.Body).Decode(to); err != nil {
		return errdefs.InvalidInputf("%s: the body does not follow the protocol", r.URL.Path)
	}
	return nil
}

// submitted decodes the pod in the body of a create request. The body has one of three forms: the form of API
// servers, a list as in the description of the protocol, or the form of a virtual node that connects without an
// API server.
func submitted(raw json.RawMessage) (in wire.Retrieved, err error) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		var list []wire.Retrieved
		if json.Unmarshal(raw, &list) != nil || len(list) != 1 {
			return in, errdefs.InvalidInput("the body is not one pod")
		}
		return list[0], nil
	}
	if _, sorted := fields["container"]; !sorted { // the body of a server is sorted by container
		var c wire.Create
		if json.Unmarshal(raw, &c) != nil {
			return in, errdefs.InvalidInput("the body does not follow the protocol")
		}
		return wire.Retrieved{Pod: c.Pod, Containers: []wire.Container{{ConfigMaps: c.ConfigMaps, Projected: c.Projected, Secrets: c.Secrets}}}, nil
	}
	if json.Unmarshal(raw, &in) != nil {
		return in, errdefs.InvalidInput("the body does not follow the protocol")
	}
	return in, nil
}
