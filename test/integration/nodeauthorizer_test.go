// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// TestNodeAuthorizer runs a node with nothing but the identity system:node:NAME, as a kubelet has it.
func TestNodeAuthorizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	w.start()
	w.awaitNode("is ready", nodeReady)

	w.createSources()
	w.createService("database")
	token := w.podFromSources("web")
	token.Spec.AutomountServiceAccountToken = nil // so it also has the projected volume that most pods have
	pod := w.startPod(token)
	env := w.backend.Has(w.key("web")).Spec.Containers[0].Env
	for name, want := range map[string]string{"COLOUR": "blue", "PASSWORD": "hidden", "ALL_colour": "blue", "ALL_password": "hidden",
		"DATABASE_SERVICE_PORT": "5432"} {
		if got := valueOf(env, name); got != want {
			t.Errorf("variable %s: got %q, want %q", name, got, want)
		}
	}

	w.annotate("web")
	w.awaitBackend("the backend knows of the annotation", func() bool { return w.backend.Count("update "+w.key("web")) > 0 })
	w.remove("web", metav1.DeleteOptions{})
	w.awaitGone("web", pod.UID)

	w.startPod(w.podFromSources("forced"))
	w.remove("forced", atOnce())
	w.awaitEmptyBackend()
	w.awaitEvents("ProviderCreateSuccess", "ProviderDeleteSuccess")

	w.allowed()
	w.readsByName("secrets", "configmaps")
}

// TestOrphanUnderNodeAuthorizer: a pod is deleted while the node process is down. The new process removes the
// pod from the backend. The Node authorizer does not allow it to get this pod by name, because the pod does not
// exist.
func TestOrphanUnderNodeAuthorizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	daemon := w.start()
	w.startPod(w.pod("web"))
	daemon.stop()
	w.remove("web", atOnce())
	w.start()
	w.awaitEmptyBackend()
	w.allowed()
}

// TestLabelThatANodeMayNotSet: by default a node has the label kubernetes.io/role, which only an administrator
// may set. The node registers without this label and works.
func TestLabelThatANodeMayNotSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asNode()
	w.opts = nil
	for range 2 {
		before := len(w.requests.refusals())
		daemon := w.start()
		node := w.awaitNode("is ready", nodeReady)
		if _, has := node.Labels[restrictedLabel]; has || node.Labels["type"] != "virtual-kubelet" {
			t.Errorf("labels of the node: got %v, want all but %s", node.Labels, restrictedLabel)
		}
		w.startPod(w.pod("web"))
		w.remove("web", atOnce())
		w.awaitEmptyBackend()
		daemon.stop()
		if refused := w.requests.refusals()[before:]; len(refused) > 1 {
			t.Errorf("the node asked more than once for what it may not:\n%s", lines(refused))
		}
	}
}

const restrictedLabel = "kubernetes.io/role"

// asNode gives the node the identity system:node:NAME only, and no label that this identity may not set.
func (w *world) asNode() {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.api.NodeCredentials(w.T, w.nodeName).Kubeconfig)
	if err != nil {
		w.Fatal(err)
	}
	config.QPS = -1
	w.config = config
	w.opts = append(w.opts, func(cfg *nodeutil.NodeConfig) error {
		delete(cfg.NodeSpec.Labels, restrictedLabel)
		return nil
	})
}

// allowed checks that the API server allowed every request of the node. One kind of refusal is expected: the Node authorizer learns of a
// pod by a watch of its own. While its watch lags behind the node's, it refuses the objects that the pod refers to, and the node retries.
func (w *world) allowed() {
	w.Helper()
	refused := slices.DeleteFunc(w.requests.refusals(), func(r request) bool {
		return r.method == http.MethodGet && strings.Contains(r.answer, "no relationship found between node")
	})
	if len(refused) > 0 {
		w.Errorf("the API server does not allow:\n%s", lines(refused))
	}
}

// createSources makes a ConfigMap and a Secret.
func (w *world) createSources() {
	w.Helper()
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"colour": "blue"}}
	if _, err := w.client().CoreV1().ConfigMaps(w.namespace).Create(w.Context(), config, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, StringData: map[string]string{"password": "hidden"}}
	if _, err := w.client().CoreV1().Secrets(w.namespace).Create(w.Context(), secret, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) createService(name string) {
	w.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}},
	}
	if _, err := w.client().CoreV1().Services(w.namespace).Create(w.Context(), service, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// podFromSources returns a pod whose environment comes from the ConfigMap and the Secret.
func (w *world) podFromSources(name string) *corev1.Pod {
	settings := corev1.LocalObjectReference{Name: "settings"}
	credentials := corev1.LocalObjectReference{Name: "credentials"}
	pod := w.pod(name)
	c := &pod.Spec.Containers[0]
	c.Env = []corev1.EnvVar{
		{Name: "COLOUR", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: settings, Key: "colour"},
		}},
		{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: credentials, Key: "password"},
		}},
	}
	c.EnvFrom = []corev1.EnvFromSource{
		{Prefix: "ALL_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: settings}},
		{Prefix: "ALL_", SecretRef: &corev1.SecretEnvSource{LocalObjectReference: credentials}},
	}
	return pod
}

func valueOf(env []corev1.EnvVar, name string) string {
	for _, v := range env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

func (w *world) annotate(name string) {
	w.Helper()
	body := []byte(`{"metadata":{"annotations":{"example.test/note":"changed"}}}`)
	if _, err := w.pods().Patch(w.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}); err != nil {
		w.Fatalf("annotate pod %s: %v", name, err)
	}
}

// awaitEvents waits until events with the reasons are in the test's namespace.
func (w *world) awaitEvents(reasons ...string) {
	w.Helper()
	q := query{client: w.client().CoreV1().RESTClient(), resource: "events", namespace: w.namespace}
	await(w.T, q, &corev1.Event{}, "there are events "+strings.Join(reasons, ", "), func(events []*corev1.Event) bool {
		return all(reasons, func(reason string) bool {
			for _, e := range events {
				if e.Reason == reason {
					return true
				}
			}
			return false
		})
	})
}

// readsByName checks that the node read each object of these kinds by name.
func (w *world) readsByName(kinds ...string) {
	w.Helper()
	for _, kind := range kinds {
		n := 0
		for _, r := range w.requests.those(func(r request) bool { return r.method == http.MethodGet }) {
			switch {
			case strings.HasSuffix(r.path, "/"+kind):
				if !strings.Contains(r.query.Get("fieldSelector"), "metadata.name=") {
					w.Errorf("the node lists %s: %s", kind, r)
				}
				n++
			case strings.Contains(r.path, "/"+kind+"/"):
				n++
			}
		}
		if n == 0 {
			w.Errorf("the node never asked for %s, so this test shows nothing", kind)
		}
	}
}
