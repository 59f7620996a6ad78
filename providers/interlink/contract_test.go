// SPDX-License-Identifier: Apache-2.0

package interlink

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/capability"
	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/inprocess"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// TestContract runs the contract of providers through a double of the API server and our plugin, whose
// containers are goroutines.
func TestContract(t *testing.T) {
	dir, cloud := shortDir(t), inprocess.New(t.Context())
	sidecar, _ := startPlugin(t, dir, goroutines(cloud), "")
	url, _ := startDouble(t, dir, sidecar)
	providertest.Run(t, harness(dir, url, cloud))
}

// TestContractOnTheRealServer runs the same contract through interLink's own API server.
func TestContractOnTheRealServer(t *testing.T) {
	needServer(t)
	dir, cloud := shortDir(t), inprocess.New(t.Context())
	sidecar, _ := startPlugin(t, dir, goroutines(cloud), "")
	url, _ := startServer(t, dir, sidecar)
	h := harness(dir, url, cloud)
	h.Subject = providertest.Subject{Provider: "interlink", Backend: "interLink's own API server (July 2025) with our plugin, whose containers are goroutines"}
	providertest.Run(t, h)
}

// TestContractWithoutServer runs the same contract without an API server, if interLink's own programs are
// required.
func TestContractWithoutServer(t *testing.T) {
	needServer(t)
	dir, cloud := shortDir(t), inprocess.New(t.Context())
	url, _ := startPlugin(t, dir, goroutines(cloud), "")
	providertest.Run(t, harness(dir, url, cloud))
}

// ofRunner lists the features of this test's containers that not every plugin has.
var ofRunner = []capability.Feature{
	capability.Sidecars, capability.ExecProbes, capability.PreStopHooks,
	capability.TerminationMessages, capability.SubPath, capability.MemoryEmptyDir,
}

// left lists the leftovers of the pods of a namespace: pods of the runner, and files of the plugin and of the
// server that are named after the pods or mention them.
func left(dir string, cloud *inprocess.Cloud, namespace string) (map[string][]string, error) {
	out := map[string][]string{}
	for _, pod := range cloud.Left()["pods"] {
		if strings.HasPrefix(pod, namespace+"/") {
			out["pods"] = append(out["pods"], pod)
		}
	}
	names, err := providertest.FilesBelow(dir)
	for _, name := range names {
		data, _ := os.ReadFile(filepath.Join(dir, name)) // directories and sockets have no data
		if strings.Contains(name, namespace) || strings.HasPrefix(name, "state/") && bytes.Contains(data, []byte(namespace)) {
			out["files"] = append(out["files"], name)
		}
	}
	return out, err
}

func harness(dir, url string, cloud *inprocess.Cloud) providertest.Harness {
	return providertest.Harness{
		Backend: func(_ context.Context, env providertest.Env) (*providertest.Backend, error) {
			b := &between{}
			return &providertest.Backend{
				Open: func(context.Context) (node.PodLifecycleHandler, error) {
					p, err := openProvider(cli.ProviderInput{ProviderConfig: env.ProviderConfig, NodeName: env.Node.Name},
						Config{URL: url, Features: ofRunner, StatusInterval: metav1.Duration{Duration: 100 * time.Millisecond}, earlier: time.Nanosecond}) // our plugin repeats no answer
					if err == nil {
						b.put(through(p))
					}
					return p, err
				},
				Left:       func() (map[string][]string, error) { return left(dir, cloud, env.Namespace) },
				Instances:  func(pod *corev1.Pod) (int, error) { return cloud.Instances(pod.UID), nil },
				Kill:       func(pod *corev1.Pod, container string) error { return cloud.Kill(pod.UID, container) },
				Lose:       func(pod *corev1.Pod) error { return cloud.Lose(pod.UID) },
				Outage:     func(on bool) { b.each(func(l *line) { l.cut = on }) },
				Throttle:   func(on bool) { b.each(func(l *line) { l.throttled = on }) },
				LoseAnswer: func() { b.each(func(l *line) { l.lose = true }) },
			}, nil
		},
		Container: func(_ *corev1.Pod, k *corev1.Container, p program.Program) error {
			k.Image, k.Args = "program", p.Args()
			return nil
		},
		Command:  func(p program.Program) ([]string, error) { return append([]string{"program"}, p.Args()...), nil },
		Patience: time.Minute, Every: 50 * time.Millisecond, Tick: time.Second, Parallel: 8,
		Except: exceptions(),
		Unproven: map[capability.Feature]string{
			capability.TokenVolumes:    "no check of the contract has tokens; TestTokensAreSent sees one in a container",
			capability.ContainerLimits: "the containers of this test are goroutines; TestRealContainers sees a limit",
		},
	}
}

// between holds the lines of the providers of one check. The last line is in use.
type between struct {
	mu   sync.Mutex
	now  *line       // guarded by mu
	last func(*line) // guarded by mu
}

func (b *between) put(l *line) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = l
	if b.last != nil {
		l.set(b.last)
	}
}

func (b *between) each(f func(*line)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = f
	if b.now != nil {
		b.now.set(f)
	}
}

// exceptions returns the checks of features that the protocol lacks, and the checks that use exec.
func exceptions() map[string]string {
	except := map[string]string{
		"settings/limits": "the containers of this test are goroutines, which have none",
		"stats/summary":   "the protocol tells nothing of what pods use",
	}
	for _, name := range []string{"probes/readiness", "probes/startup"} {
		except[name] = "it looks by exec, which the protocol does not have"
	}
	for _, name := range []string{
		"exec/output", "exec/exit-code", "exec/stdin", "exec/terminal", "exec/pod-ends", "exec/cancel", "exec/absent", "attach/output",
		"port-forward/both-ways", "port-forward/refused",
	} {
		except[name] = "the protocol has no such request, and the provider says so"
	}
	return except
}
