// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests the alerts of deploy/monitoring with a real Prometheus, on faults of a node that it
// scrapes.
package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/internal/metrics"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/memapi"
	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/memory"
)

const rulesFile = "../../deploy/monitoring/rules.yaml"

// program returns the path of a program of Debian's package prometheus. If the program is missing, the test is
// skipped, or fails if VK_REQUIRE_PROMETHEUS is set.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("VK_REQUIRE_PROMETHEUS") != "" {
		t.Fatalf("%s is not installed: apt-get install prometheus", name)
	}
	t.Skipf("%s is not installed: apt-get install prometheus", name)
	return ""
}

// TestAlertsFireInTime lets promtool check that the alerts begin and end in time.
func TestAlertsFireInTime(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "test", "rules", "rules_test.yaml")
	cmd.Dir = filepath.Dir(rulesFile)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// alertmanager receives the alerts of a Prometheus.
type alertmanager struct {
	mu     sync.Mutex
	firing map[string]bool
	news   chan struct{} // holds a token after each change
}

func (a *alertmanager) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var alerts []struct {
		Labels map[string]string
		EndsAt time.Time
	}
	if err := json.NewDecoder(req.Body).Decode(&alerts); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, alert := range alerts {
		if alert.EndsAt.After(time.Now()) {
			a.firing[alert.Labels["alertname"]] = true
		} else {
			delete(a.firing, alert.Labels["alertname"])
		}
	}
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// await waits until all of the alerts fire, or until none of them fires.
func (a *alertmanager) await(ctx context.Context, t *testing.T, fire bool, alerts ...string) {
	t.Helper()
	for {
		a.mu.Lock()
		n := 0
		for _, name := range alerts {
			if a.firing[name] {
				n++
			}
		}
		state := fmt.Sprint(a.firing)
		a.mu.Unlock()
		if fire && n == len(alerts) || !fire && n == 0 {
			return
		}
		select {
		case <-a.news:
		case <-ctx.Done():
			t.Fatalf("want that %v fire: %t; what fires: %s", alerts, fire, state)
		}
	}
}

// faster turns the minutes of the alerts into seconds, to shorten the test.
func faster(rules string) string {
	rules = regexp.MustCompile(`for: \d+m`).ReplaceAllString(rules, "for: 1s")
	rules = regexp.MustCompile(`\[\d+m\]`).ReplaceAllString(rules, "[5s]")
	return regexp.MustCompile(`offset \d+m`).ReplaceAllString(rules, "offset 5s")
}

// startPrometheus starts a Prometheus that scrapes target and sends its alerts to alertmanager.
func startPrometheus(ctx context.Context, t *testing.T, target, alertmanager string) {
	t.Helper()
	dir, binary := t.TempDir(), program(t, "prometheus")
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [rules.yaml]
alerting: {alertmanagers: [{api_version: v2, static_configs: [{targets: [%q]}]}]}
scrape_configs: [{job_name: virtual-kubelet, honor_labels: true, static_configs: [{targets: [%q]}]}]
`, alertmanager, target)
	for name, text := range map[string]string{"prometheus.yaml": config, "rules.yaml": faster(string(rules))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, binary, "--config.file="+dir+"/prometheus.yaml", "--storage.tsdb.path="+dir+"/data", "--web.listen-address=127.0.0.1:0", "--rules.alert.resend-delay=500ms")
	var log testlog.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.Tail())
		}
	})
}

// provider reports the state of the backend by its Ping.
type provider struct {
	*memory.Backend
	node.NodeProvider
}

// Ping implements node.NodeProvider.
func (p provider) Ping(ctx context.Context) error { return p.Backend.Ping(ctx) }

// startNode runs the node n until ctx ends.
func startNode(ctx context.Context, t *testing.T, wg *sync.WaitGroup, api *memapi.API, backend *memory.Backend) {
	t.Helper()
	objects := fake.NewClientset()
	factory, podInformer := informers.NewSharedInformerFactory(objects, 0), api.Informer(0)
	core := factory.Core().V1()
	pods, err := node.NewPodController(node.PodControllerConfig{
		PodClient: api, PodInformer: podInformer, EventRecorder: record.NewFakeRecorder(1 << 14), Provider: backend, NodeName: "n", PollInterval: time.Second,
		ConfigMapInformer: core.ConfigMaps(), SecretInformer: core.Secrets(), ServiceInformer: core.Services(), MissingPodsQuarantine: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	nodes, err := node.NewNodeController(provider{backend, node.NewNaiveNodeProvider()}, spec, objects.CoreV1().Nodes(), node.WithNodePingInterval(500*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	wg.Go(func() { podInformer.Informer().RunWithContext(ctx) })
	wg.Go(func() { _ = pods.Run(ctx, 4) })
	wg.Go(func() { _ = nodes.Run(ctx) })
	t.Cleanup(factory.Shutdown)
}

// bound returns a pod of the node.
func bound(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: name}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
}

// awaitRunning waits until n pods run.
func awaitRunning(ctx context.Context, t *testing.T, api *memapi.API, n int) {
	t.Helper()
	w, err := api.Pods("d").Watch(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for running := map[string]bool{}; len(running) < n; {
		select {
		case e := <-w.ResultChan():
			if pod, ok := e.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
				running[pod.Name] = true
			}
		case <-ctx.Done():
			t.Fatalf("%d pods run, want %d", len(running), n)
		}
	}
}

// TestAlertsOfFaults: an unavailable backend, stuck pods, missing pods, throttling, a panic and a dead process each raise their alert,
// which ends with the fault.
func TestAlertsOfFaults(t *testing.T) {
	program(t, "prometheus")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	manager := &alertmanager{firing: map[string]bool{}, news: make(chan struct{}, 1)}
	receiver := httptest.NewServer(manager)
	defer receiver.Close()
	metricsPage := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{})
	dead := atomic.Bool{}
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if dead.Load() { // like a refused connection: up is 0
			panic(http.ErrAbortHandler)
		}
		metricsPage.ServeHTTP(w, req)
	}))
	defer served.Close()

	api, backend := memapi.New(), memory.New()
	running, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer end()
	defer backend.Heal()
	startNode(running, t, &wg, api, backend)
	const many = 20
	for i := range many {
		api.Create(bound(fmt.Sprint("p", i)))
	}
	awaitRunning(ctx, t, api, many)
	startPrometheus(ctx, t, strings.TrimPrefix(served.URL, "http://"), strings.TrimPrefix(receiver.URL, "http://"))

	backend.Inject(memory.Fault{Method: memory.Ping, Err: memory.ErrUnwell})
	backend.Inject(memory.Fault{Method: memory.Delete, Key: "d/p0", Err: memory.ErrUnwell})
	api.Delete("d", "p0", 1)
	api.Change("d", "p0", func(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-2 * time.Minute)} })
	backend.Inject(memory.Fault{Method: memory.Create, Key: "d/throttled", Err: errdefs.RetryAfter(memory.ErrUnwell, 500*time.Millisecond)})
	api.Create(bound("throttled"))
	backend.Inject(memory.Fault{Method: memory.Create, Key: "d/panics", Times: 1, Panic: "a fault of the test"})
	api.Create(bound("panics"))
	faults := []string{"VirtualKubeletNodeNotReady", "VirtualKubeletPodsStuckTerminating", "VirtualKubeletBackendThrottles", "VirtualKubeletPodsNotInStep", "VirtualKubeletProviderHangs"}
	manager.await(ctx, t, true, faults...)
	backend.Heal()
	manager.await(ctx, t, false, faults...)

	backend.Lie(memory.Lie{Empty: true, Reads: true})
	manager.await(ctx, t, true, "VirtualKubeletPodsMissing")
	backend.Truth()
	manager.await(ctx, t, false, "VirtualKubeletPodsMissing")

	dead.Store(true)
	manager.await(ctx, t, true, "VirtualKubeletDown")
	dead.Store(false)
	manager.await(ctx, t, false, "VirtualKubeletDown")
}
