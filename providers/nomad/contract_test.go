// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
)

func duration(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} }

// TestContract runs the contract of providers on a real agent, with the driver exec and a network for each pod.
func TestContract(t *testing.T) {
	a := sharedAgent(t)
	container, command := providertest.Shell("none")
	providertest.Run(t, providertest.Harness{
		Backend: a.backend, Container: container, Command: command,
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8, OwnStartErrors: true,
		Subject: providertest.Subject{Provider: "nomad", Backend: "a real agent of Nomad 1.10.0, with the driver exec"},
		Except: map[string]string{
			"logs/timestamps":  "Nomad keeps no times of lines, and the provider says so",
			"logs/since":       "Nomad keeps no times of lines, and the provider says so",
			"logs/previous":    "Nomad keeps one log for all runs, and the provider says so",
			"settings/limits":  "the tasks of exec do not see their control groups; TestMemoryLimit uses more than one allows",
			"attach/output":    "Nomad has no such request, and the provider says so",
			"starts/backs-off": "Nomad gives up a task whose driver cannot start it, and the README says so",
		},
		Unproven: map[capability.Feature]string{
			capability.ContainerLimits: "the tasks of exec do not see their control groups; TestMemoryLimit uses more than one allows",
			capability.NetworkProbes:   "a shell of the contract cannot listen; TestProbesAskTheAddressOfThePod",
			capability.HostNetwork:     "TestHostNetwork runs a pod in it",
			capability.HostPorts:       "the agent is on the loopback device, where no port is mapped; the golden files have one",
			capability.HostPortMapping: "the agent is on the loopback device, where no port is mapped; the golden files have one",
			capability.TokenVolumes:    "no check of the contract has tokens; TestPodWithSecrets reads one in a container",
		},
	})
}

// backend returns the backend of one check: the agent, for the Kubernetes cluster of that check.
func (a *agent) backend(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
	l, err := newLine(a)
	if err != nil {
		return nil, err
	}
	conf := a.config(env.Namespace)
	conf.Address = l.server.URL
	o := owner{cluster: env.Namespace, node: env.Node.Name}
	return &providertest.Backend{
		Open: func(context.Context) (node.PodLifecycleHandler, error) {
			conf, err := conf.complete()
			if err != nil {
				return nil, err
			}
			d, err := newDriver(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name}, conf)
			if err != nil {
				return nil, err
			}
			return d.provider, nil
		},
		Close:      func() error { l.outage(false); l.server.CloseClientConnections(); l.server.Close(); return nil },
		Left:       func() (map[string][]string, error) { return a.left(o.prefix()) },
		Outage:     l.outage,
		Throttle:   func(on bool) { l.set(func() { l.throttled = on }) },
		LoseAnswer: func() { l.set(func() { l.lose = true }) },
		Instances: func(pod *corev1.Pod) (n int, err error) {
			all, err := a.allocs(o.jobID(string(pod.UID)))
			for _, k := range all {
				for _, s := range k.TaskStates {
					if s.State == "running" {
						n++
						break
					}
				}
			}
			return n, err
		},
		Kill: func(pod *corev1.Pod, container string) error {
			all, err := a.allocs(o.jobID(string(pod.UID)))
			if err == nil && len(all) != 1 {
				err = fmt.Errorf("there are %d allocations", len(all))
			}
			if err != nil {
				return err
			}
			return a.do(http.MethodPut, "/v1/client/allocation/"+all[0].ID+"/signal", nomadapi.AllocSignalRequest{Task: container, Signal: "SIGKILL"}, nil)
		},
		Lose: func(pod *corev1.Pod) error {
			return a.do(http.MethodDelete, "/v1/job/"+o.jobID(string(pod.UID))+"?purge=true", nil, nil)
		},
	}, nil
}

// left lists the leftovers of a node in Nomad: jobs, Variables, and allocations with files on a client.
func (a *agent) left(prefix string) (map[string][]string, error) {
	var jobs []*nomadapi.JobListStub
	var variables []*nomadapi.VariableMetadata
	var allocs []*nomadapi.AllocationListStub
	left := map[string][]string{}
	err := errors.Join(
		a.do(http.MethodGet, "/v1/jobs?prefix="+url.QueryEscape(prefix), nil, &jobs),
		a.do(http.MethodGet, "/v1/vars", nil, &variables), a.do(http.MethodGet, "/v1/allocations", nil, &allocs))
	for _, job := range jobs {
		left["jobs"] = append(left["jobs"], job.ID)
	}
	for _, v := range variables {
		if strings.Contains(v.Path, prefix) {
			left["variables"] = append(left["variables"], v.Path)
		}
	}
	for _, alloc := range allocs {
		if strings.HasPrefix(alloc.JobID, prefix) {
			left["allocations"] = append(left["allocations"], alloc.ID)
		}
	}
	return left, err
}

func (a *agent) allocs(job string) (all []*nomadapi.AllocationListStub, err error) {
	return all, a.do(http.MethodGet, "/v1/job/"+job+"/allocations", nil, &all)
}

// line is a proxy between a provider and the agent, through which a test can cut or lose requests.
type line struct {
	server *httptest.Server

	mu        sync.Mutex
	cut       bool     // guarded by mu
	throttled bool     // guarded by mu
	lose      bool     // guarded by mu; the answer to the next job
	dies      bool     // guarded by mu; no request passes after the next job, as with a killed node
	dead      bool     // guarded by mu
	requests  []string // guarded by mu
}

func newLine(a *agent) (*line, error) {
	to, err := url.Parse(a.url)
	if err != nil {
		return nil, err
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	l := &line{}
	l.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		cut, throttled := l.cut || l.dead, l.throttled
		lose := l.lose && r.Method == http.MethodPut && r.URL.Path == "/v1/jobs"
		if lose {
			l.lose, l.dead = false, l.dies
		}
		l.requests = append(l.requests, r.Method+" "+r.URL.Path)
		l.mu.Unlock()
		switch {
		case cut:
			panic(http.ErrAbortHandler)
		case throttled:
			http.Error(w, "too many requests", http.StatusTooManyRequests)
		case lose:
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	return l, nil
}

func (l *line) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *line) outage(on bool) {
	l.set(func() { l.cut = on })
	if on {
		l.server.CloseClientConnections()
	}
}
