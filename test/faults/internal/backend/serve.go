// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/ledger"
)

// staleAfter is the largest age of a call at its arrival.
const staleAfter = 5 * time.Second

var (
	errClosed = errors.New("the backend is closed")
	errStale  = errors.New("the call is too old")
)

// call is a call of the provider's interface in transit.
type call struct {
	Method    string      `json:"method"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name,omitempty"`
	Node      string      `json:"node,omitempty"`
	Pod       *corev1.Pod `json:"pod,omitempty"`
	Sent      time.Time   `json:"sent"`
}

// answer is the answer to a call.
type answer struct {
	Pods     []*corev1.Pod `json:"pods,omitempty"`
	Error    string        `json:"error,omitempty"`
	NotFound bool          `json:"notFound,omitempty"`
	Panic    string        `json:"panic,omitempty"`
}

// Serve answers clients at the unix socket until its returned listener is closed.
func (b *Backend) Serve(socket string) (*http.Server, error) {
	listener, err := net.Listen("unix", socket) //nolint:noctx // it does not wait for anything
	if err != nil {
		return nil, fmt.Errorf("serve the backend: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /call", b.serveCall)
	mux.HandleFunc("GET /watch", b.serveWatch)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }() // until it is closed
	return server, nil
}

func (b *Backend) serveCall(w http.ResponseWriter, req *http.Request) {
	var c call
	if err := json.NewDecoder(req.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var a answer
	if err := b.handleCall(c, &a); err != nil {
		a.Error, a.NotFound = err.Error(), errdefs.IsNotFound(err)
	}
	_ = json.NewEncoder(w).Encode(a) // the client may have died
}

func (b *Backend) handleCall(c call, a *answer) (err error) {
	key := c.Namespace + "/" + c.Name
	fault := b.faultOf(c.Method, key)
	if fault.Delay > 0 {
		<-time.After(fault.Delay)
	}
	if a.Panic = fault.Panic; a.Panic != "" {
		return nil
	}
	if fault.Error != "" {
		return errors.New(fault.Error)
	}
	if c.Pod != nil && time.Since(c.Sent) > staleAfter {
		return errStale
	}
	switch c.Method {
	case "CreatePod":
		return b.recordCall(ledger.Create, c.Pod, func(pod *corev1.Pod) error {
			err := b.startInstance(pod)
			if err == nil && b.times.Create > 0 {
				<-time.After(b.times.Create)
			}
			return err
		})
	case "UpdatePod":
		return b.recordCall(ledger.Update, c.Pod, b.updatePod)
	case "DeletePod":
		return b.recordCall(ledger.Delete, c.Pod, b.remove)
	case "GetPod", "GetPodStatus":
		var pod *corev1.Pod
		if pod, err = b.get(key); err == nil {
			a.Pods = []*corev1.Pod{pod}
		}
	case "GetPods":
		a.Pods = slices.DeleteFunc(b.list(), func(pod *corev1.Pod) bool { return c.Node != "" && pod.Spec.NodeName != c.Node })
	}
	return err
}

// recordCall makes a call with its two entries around it.
func (b *Backend) recordCall(verb ledger.Verb, pod *corev1.Pod, do func(*corev1.Pod) error) error {
	b.recordBegin(verb, pod)
	err := do(pod)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recordEntry(verb, ledger.End, pod, nil)
	return err
}

// recordBegin records the beginning of a call. For a Delete, the entry names the instance.
func (b *Backend) recordBegin(verb ledger.Verb, pod *corev1.Pod) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var target *instance
	if found := b.instancesOf(keyOf(pod), pod.UID); verb == ledger.Delete && len(found) > 0 {
		target = found[len(found)-1]
	}
	b.recordEntry(verb, ledger.Begin, pod, target)
}
