// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/virtual-kubelet/virtual-kubelet/test/e2e"
)

// cluster serves one node, with everything that the suite needs before its first test, and returns a kubeconfig.
func cluster(t *testing.T, ready corev1.ConditionStatus) string {
	t.Helper()
	node := corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"},
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Probe", Message: "as told"}}
	end := corev1.Node{TypeMeta: node.TypeMeta}
	end.ResourceVersion = "1"
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		send := func(v any) {
			if err := json.NewEncoder(w).Encode(v); err != nil {
				t.Errorf("answer %s: %v", r.URL, err)
			}
		}
		if r.URL.Query().Get("watch") == "" {
			list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{node}}
			list.ResourceVersion = "1"
			send(list)
			return
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			send(map[string]any{"type": "ADDED", "object": node})
			send(map[string]any{"type": "BOOKMARK", "object": end})
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMissingNamesPanic(t *testing.T) {
	for want, config := range map[string]e2e.EndToEndTestSuiteConfig{
		"Namespace": {NodeName: "n"},
		"NodeName":  {Namespace: "default"},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("without %s: panic %q", want, got)
				}
			}()
			e2e.NewEndToEndTestSuite(config)
		}()
	}
}

func TestRunFindsEveryTest(t *testing.T) {
	var calls []string
	note := func(what string) func() error {
		return func() error { calls = append(calls, what); return nil }
	}
	t.Run("suite", func(t *testing.T) {
		e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
			Kubeconfig: cluster(t, corev1.ConditionTrue),
			Namespace:  "default",
			NodeName:   "n",
			Setup:      note("set up"),
			Teardown:   note("tear down"),
			ShouldSkipTest: func(name string) bool {
				calls = append(calls, name)
				return true
			},
		}).Run(t)
	})
	want := []string{
		"TestCreatePodWithMandatoryInexistentConfigMap", "TestCreatePodWithMandatoryInexistentSecrets",
		"TestCreatePodWithOptionalInexistentConfigMap", "TestCreatePodWithOptionalInexistentSecrets",
		"TestGetMetricsResource", "TestGetPods", "TestGetStatsSummary",
		"TestPodLifecycleForceDelete", "TestPodLifecycleGracefulDelete",
	}
	if diff := cmp.Diff(slices.Concat([]string{"set up"}, want, []string{"tear down"}), calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

func TestTeardownPanicsWithItsError(t *testing.T) {
	boom := errors.New("boom")
	s := e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
		Namespace: "default", NodeName: "n", Teardown: func() error { return boom },
	})
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, boom) {
			t.Errorf("recovered %v, want %v", err, boom)
		}
	}()
	s.Teardown()
}

// TestNodeThatIsNotReadyFails runs itself in a process of its own, which must fail.
func TestNodeThatIsNotReadyFails(t *testing.T) {
	const variable = "E2E_KUBECONFIG_OF_UNREADY_NODE"
	if kubeconfig := os.Getenv(variable); kubeconfig != "" {
		e2e.NewEndToEndTestSuite(e2e.EndToEndTestSuiteConfig{
			Kubeconfig: kubeconfig, Namespace: "default", NodeName: "n", WatchTimeout: time.Second,
		}).Run(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNodeThatIsNotReadyFails$")
	cmd.Env = append(os.Environ(), variable+"="+cluster(t, corev1.ConditionFalse))
	out, err := cmd.CombinedOutput()
	want := "wait until node n is Ready: timed out waiting for the condition; condition Ready is False: Probe: as told"
	if err == nil || !strings.Contains(string(out), want) {
		t.Errorf("error %v, output lacks %q:\n%s", err, want, out)
	}
}
