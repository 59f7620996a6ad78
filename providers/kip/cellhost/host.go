// SPDX-License-Identifier: Apache-2.0

package cellhost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
	"github.com/virtual-kubelet/virtual-kubelet/providers/kip/internal/cell"
)

// RunPod runs the pod of an instance as podjob.Run does, until ctx ends or the pod has ended.
type RunPod func(ctx context.Context, instance string, job podjob.Config) error

// Host runs the agents of instances.
type Host struct {
	dir    string
	runPod RunPod

	running sync.WaitGroup // running agents

	mu        sync.Mutex
	all       map[string]*agent // guarded by mu; keyed by the ID of the instance
	network   int               // guarded by mu; second number of the addresses
	addresses int               // guarded by mu; number of addresses that were tried
}

// agent is the agent of an instance.
type agent struct {
	end   context.CancelFunc
	ended chan struct{} // closed when the agent has ended
}

// New returns a host that keeps the files of agents in dir.
func New(dir string, runPod RunPod) *Host {
	return &Host{dir: dir, runPod: runPod, all: map[string]*agent{}, network: 1 + rand.IntN(250)} //nolint:gosec // no secret
}

// Boot starts the agent of an instance, and returns its address. The agent runs until End, or until it powers its machine off.
func (h *Host) Boot(id, _ string, metadata http.Handler) (string, error) {
	data, err := readUserData(metadata)
	if err != nil {
		return "", err
	}
	user, err := cell.ParseUserData(data)
	if err != nil {
		return "", err
	}
	a, err := cell.NewAgent(cell.AgentConfig{
		UserData: user, Dir: filepath.Join(h.dir, id), Version: "simulated", PowerOff: func(string) {},
		Run: func(ctx context.Context, job podjob.Config) error { return h.runPod(ctx, id, job) },
	})
	if err != nil {
		return "", err
	}
	l, address, err := h.listen()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(context.Background())
	running := &agent{cancel, make(chan struct{})}
	h.running.Go(func() {
		defer close(running.ended)
		_ = a.Serve(ctx, l) // an agent that fails is a machine that ends
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[id] = running
	return address, nil
}

// maxTries limits the addresses that listen tries.
const maxTries = 100

// listen listens at the port of agents, at an unused address of the loopback device.
func (h *Host) listen() (l net.Listener, address string, err error) {
	for range maxTries {
		h.mu.Lock()
		n := h.addresses
		h.addresses++
		h.mu.Unlock()
		address = fmt.Sprintf("127.%d.%d.%d", h.network, n/250, 1+n%250)
		l, err = net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(cell.Port))) //nolint:noctx // it has no name to look up
		if err == nil {
			return l, address, nil
		}
	}
	return nil, "", fmt.Errorf("listen at one of %d addresses of the loopback device: %w", maxTries, err)
}

func (h *Host) find(id string) *agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all[id]
}

// IsRunning reports whether the agent of an instance runs.
func (h *Host) IsRunning(id string) bool {
	a := h.find(id)
	if a == nil {
		return false
	}
	select {
	case <-a.ended:
		return false
	default:
		return true
	}
}

// Console returns nothing: an agent without a machine has no console.
func (h *Host) Console(string) string { return "" }

// End ends the agent of an instance. It does not wait, because the agent may wait for the end of requests.
func (h *Host) End(id string) {
	if a := h.find(id); a != nil {
		a.end()
	}
}

// Close ends all agents, and waits for their ends.
func (h *Host) Close() {
	h.mu.Lock()
	for _, a := range h.all {
		a.end()
	}
	h.mu.Unlock()
	h.running.Wait()
}

// readUserData reads the user data of an instance as a machine does: with a token of the metadata service.
func readUserData(metadata http.Handler) ([]byte, error) {
	token, err := askMetadata(metadata, http.MethodPut, "/latest/api/token", "X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "60")
	if err != nil {
		return nil, err
	}
	return askMetadata(metadata, http.MethodGet, "/latest/user-data", "X-Aws-Ec2-Metadata-Token", string(token))
}

func askMetadata(metadata http.Handler, method, path, header, value string) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://169.254.169.254"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set(header, value)
	w := answer{status: http.StatusOK, header: http.Header{}}
	metadata.ServeHTTP(&w, r)
	if w.status != http.StatusOK {
		return nil, fmt.Errorf("%s %s: %w: %s", method, path, errNoPage, http.StatusText(w.status))
	}
	return w.body.Bytes(), nil
}

var errNoPage = errors.New("the metadata service has no such page")

// answer is an answer of the metadata service.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(data []byte) (int, error) { return a.body.Write(data) }
