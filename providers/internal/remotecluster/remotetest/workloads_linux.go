// SPDX-License-Identifier: Apache-2.0

package remotetest

import (
	_ "embed"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
)

// Settings of Workloads.
const (
	envAll     = "VK_WORKLOADS"         // "1": run it for every provider, and renew tokens at their real time; "short": renew them early
	envResults = "VK_WORKLOADS_RESULTS" // a directory for the results
)

// Workloads describes a run of common workloads through a provider: with kubectl, through the built program, in
// real containers.
type Workloads struct {
	// Provider is the name of the provider.
	Provider string
	// Start starts the remote cluster with a node. The node has the images in the given directory.
	Start func(t *testing.T, images string) *Worker
	// Config is a configuration file of the provider for the home cluster and a namespace in it.
	Config func(t *testing.T, cluster, namespace string) string
	// Env are additional environment variables of the program.
	Env []string
	// Refused maps the steps that the provider refuses to its messages.
	Refused map[string]string
	// Always enables the run in CI, too.
	Always bool
}

//go:embed workloads.yaml
var workloads string

//go:embed job.yaml
var job string

//go:embed shell.yaml
var shell string

// scenario is one run.
type scenario struct {
	*testing.T
	Workloads
	remote    *Worker
	api       *testapi.API // at home
	node      string
	namespace string
	port      int
	long      bool
}

// Run runs all steps.
func (w Workloads) Run(t *testing.T) {
	all := os.Getenv(envAll)
	if all == "" && !w.Always {
		t.Skipf("one provider is enough for each change; run make remote-workloads for all, or set %s=1", envAll)
	}
	if os.Geteuid() != 0 {
		t.Skip("containers of another user than this one need root: run the test as root, as CI does")
	}
	s := &scenario{T: t, Workloads: w, long: all != "" && all != "short", port: freePort(t)}
	s.remote, s.api = w.Start(t, demoImage(t)), testapi.New(t, testapi.Options{})
	s.namespace, s.node = s.api.Namespace(t), s.api.NodeName(t)
	credentials := s.api.NodeCredentials(t, s.node)
	if !s.long {
		credentials.Kubeconfig = shortTokens(t, credentials.Kubeconfig)
	}
	startProgram(t, s.api, s.node, credentials, w.Env, w.Provider, w.Config(t, "scenario", s.namespace))
	s.applyObjects(t, strings.ReplaceAll(workloads, "PORT_OF_WEB", strconv.Itoa(s.port)))

	first := s.awaitToken("")
	if got := s.mustKubectl(t, "get", "node", s.node, "--output=jsonpath={.status.declaredFeatures}"); !strings.Contains(got, "ExtendWebSocketsToKubelet") {
		t.Errorf("the node declares %q: the API server does not hand WebSockets to it", got)
	}
	s.runStep("Deployment with probes", s.checkDeployment)
	s.runStep("StatefulSet with ConfigMap, Secret and token volumes", s.statefulSet)
	s.runStep("Job with a sidecar", s.checkJob)
	s.runStep("kubectl logs -f", s.followLogs)
	s.runStep("kubectl exec -it", s.execShell)
	s.runStep("kubectl cp", s.copyFile)
	s.runStep("kubectl attach", s.checkAttach)
	s.runStep("kubectl attach -it", s.attachTerminal)
	s.runStep("kubectl port-forward", s.portForward)
	s.runStep("token after renewal", func(t *testing.T) { s.awaitRenewal(t, first) })
	s.runStep("nothing is left in the remote cluster", s.clearAll)
}

// podStates returns the states of all pods, for the log of a failed test.
func (s *scenario) podStates() string {
	out, err := s.runKubectl(s.T, "get", "pods", "--output=custom-columns=POD:.metadata.name,PHASE:.status.phase,WHY:.status.reason,MESSAGE:.status.message")
	return fmt.Sprint(out, err)
}

// runStep runs one step of the scenario. The step must succeed, or be refused as expected. The result is recorded.
func (s *scenario) runStep(name string, do func(t *testing.T)) {
	result := "works"
	if said := s.Refused[name]; said != "" {
		result = "refused: " + said
	}
	if !s.T.Run(name, do) {
		result = "**fails**"
		s.Logf("the pods at home:\n%s", s.podStates())
	}
	dir := os.Getenv(envResults)
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, s.Provider), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintf(f, "%s\t%s\n", name, result)
}

// mustRefuse reports whether the provider must refuse the current step, and with which message.
func (s *scenario) mustRefuse(t *testing.T) (words string, is bool) {
	_, step, _ := strings.Cut(t.Name(), "/")
	for name, words := range s.Refused {
		if strings.ReplaceAll(name, " ", "_") == step {
			return words, true
		}
	}
	return "", false
}

// failsWith checks that a command fails with an error that contains the words.
func failsWith(t *testing.T, words string, out string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v and %q, want an error with %q", err, out, words)
	}
}

// applyObjects runs kubectl apply.
func (s *scenario) applyObjects(t *testing.T, text string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.mustKubectl(t, "apply", "-f", file)
}

// refusedPod waits until the status of a pod contains the refusal.
func (s *scenario) refusedPod(t *testing.T, selector, words string) {
	t.Helper()
	Until(t, "the pod is refused", func() (bool, string) {
		out, err := s.runKubectl(t, "get", "pods", "--selector="+selector, "--output=jsonpath={range .items[*]}{.status.reason} {.status.message}{end}")
		return err == nil && strings.Contains(out, words), fmt.Sprint(out, err)
	})
}

// clearAll deletes all objects in the home cluster.
func (s *scenario) clearAll(t *testing.T) {
	s.mustKubectl(t, "delete", "deployments,statefulsets,jobs,pods", "--all", "--wait")
	mine := metav1.ListOptions{LabelSelector: homeOf(s.node).Selector()}
	Until(t, "nothing of the node is in the remote cluster", func() (bool, string) {
		core := s.remote.API.Client.CoreV1()
		pods, err := core.Pods("").List(t.Context(), mine)
		if err != nil {
			return false, err.Error()
		}
		secrets, err := core.Secrets("").List(t.Context(), mine)
		if err != nil {
			return false, err.Error()
		}
		maps, err := core.ConfigMaps("").List(t.Context(), mine)
		if err != nil {
			return false, err.Error()
		}
		return len(pods.Items)+len(secrets.Items)+len(maps.Items) == 0, fmt.Sprintf("%d pods, %d Secrets, %d ConfigMaps", len(pods.Items), len(secrets.Items), len(maps.Items))
	})
}

// freePort returns a port that no process listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
