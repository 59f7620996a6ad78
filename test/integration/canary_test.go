// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testlog"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/trace"
	"github.com/virtual-kubelet/virtual-kubelet/trace/opentelemetry"
)

// leaky is a provider that puts all secrets of a pod into every result, error and event.
type leaky struct {
	needy
	refused *[3]atomic.Int32 // of each of the calls that change something
	sick    *atomic.Bool
}

// knows returns the secrets of the provider: secrets of the environment, tokens and passwords.
func (p leaky) knows() (secrets []string) {
	p.got.mu.Lock()
	defer p.got.mu.Unlock()
	for name, pod := range p.got.created {
		for _, v := range pod.Spec.Containers[0].Env {
			if v.Name == "password" {
				secrets = append(secrets, v.Value)
			}
		}
		for _, token := range p.got.of[name] {
			secrets = append(secrets, token.Token)
		}
		for _, login := range p.got.logins[name] {
			secrets = append(secrets, login.Password)
		}
	}
	return secrets
}

// leak returns a text with all secrets in several forms. It is longer than an object should carry.
func (p leaky) leak() string {
	text := "the backend refuses https://robot:c4n4ry-url@backend.example"
	for _, secret := range p.knows() {
		text += fmt.Sprintf(" %s %q %s", secret, secret, base64.StdEncoding.EncodeToString([]byte(secret)))
	}
	return text + strings.Repeat(" and more", 1000)
}

func (p leaky) fail() error { return errors.New(p.leak()) }

// first fails the first calls of a kind, and then calls otherwise.
func (p leaky) first(kind int, otherwise func() error) error {
	if p.refused[kind].Add(1) == 1 {
		return p.fail()
	}
	return otherwise()
}

func (p leaky) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.take(ctx, pod); err != nil {
		return err
	}
	return p.first(0, func() error { return p.notifying.CreatePod(ctx, pod) })
}

func (p leaky) UpdatePod(ctx context.Context, pod *corev1.Pod) error {
	return p.first(1, func() error { return p.notifying.UpdatePod(ctx, pod) })
}

func (p leaky) DeletePod(ctx context.Context, pod *corev1.Pod) error {
	return p.first(2, func() error { return p.notifying.DeletePod(ctx, pod) })
}

func (p leaky) NotifyPods(ctx context.Context, notify func(*corev1.Pod)) {
	p.notifying.NotifyPods(ctx, func(pod *corev1.Pod) {
		pod = pod.DeepCopy()
		pod.Status.Message = p.leak()
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.test/Leak", Status: corev1.ConditionTrue, Message: p.leak()})
		notify(pod)
	})
}

func (p leaky) GetPods(ctx context.Context) ([]*corev1.Pod, error) {
	pods, err := p.notifying.GetPods(ctx)
	for _, pod := range pods {
		pod.Status.Message = p.leak()
	}
	return pods, err
}

func (p leaky) GetContainerLogs(context.Context, string, string, string, api.ContainerLogOpts) (io.ReadCloser, error) {
	return nil, p.fail()
}

func (p leaky) RunInContainer(_ context.Context, _, _, _ string, cmd []string, _ api.AttachIO) error {
	if cmd[0] == "panic" {
		panic(p.leak())
	}
	return p.fail()
}

// sickly is a node provider that fails its ping on demand, with an error that contains secrets.
type sickly struct {
	*node.NaiveNodeProviderV2
	p leaky
}

func (s sickly) Ping(context.Context) error {
	if s.p.sick.Load() {
		return s.p.fail()
	}
	return nil
}

// answers returns the answers of the node's server to an administrator, by path.
func (w *world) answers(port int32, paths ...string) map[string]string {
	w.Helper()
	client, err := rest.HTTPClientFor(w.api.Config)
	if err != nil {
		w.Fatal(err)
	}
	bodies := map[string]string{}
	for _, path := range paths {
		req, err := http.NewRequestWithContext(w.Context(), http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			w.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			w.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			w.Fatal(err)
		}
		bodies[path] = string(body)
	}
	return bodies
}

// TestSecurityD1NoSecretLeavesTheNode lets a provider put all its secrets into every text that it can return.
// Then the test searches for the secrets in every place that users can read.
func TestSecurityD1NoSecretLeavesTheNode(t *testing.T) {
	t.Parallel()
	w, got := newNeedyWorld(t)
	w.asNode()
	w.serve()
	spans := tracetest.NewInMemoryExporter()
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))) // of this process's tests, only this one traces
	w.within = func(ctx context.Context) context.Context { return trace.WithTracer(ctx, opentelemetry.Adapter{}) }
	w.level, w.said = slog.LevelDebug-100, &testlog.Buffer{}
	p := leaky{needy: needy{notifying{polled{Backend: w.backend, changed: w.changed}}, got}, refused: &[3]atomic.Int32{}, sick: &atomic.Bool{}}
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return p, sickly{node.NewNaiveNodeProvider(), p}, nil
	}
	w.start()

	pod := w.startPod(w.needyPod("web"))
	secrets := append(p.knows(), "c4n4ry-url", "c4n4ry-env-web", "pull-web")
	if len(secrets) != 7 {
		t.Fatalf("the provider knows %d secrets, want a password, two tokens and a pull password", len(secrets)-3)
	}
	w.annotate("web")
	w.awaitBackend("the backend knows of the annotation", func() bool { return w.backend.Count("update "+w.key("web")) > 0 })
	served := w.awaitNode("serves", func(n *corev1.Node) bool { return n.Status.DaemonEndpoints.KubeletEndpoint.Port > 0 })
	seen := w.answers(served.Status.DaemonEndpoints.KubeletEndpoint.Port, "/pods", "/runningpods/", "/metrics", "/metrics/resource", "/stats/summary",
		"/containerLogs/"+w.key("web")+"/main", "/nowhere")
	for _, command := range []string{"fail", "panic"} {
		stdout, stderr, err := w.api.Kubectl(t, "--namespace="+w.namespace, "exec", "web", "--", command)
		seen["kubectl exec "+command] = fmt.Sprint(stdout, stderr, err)
	}
	shown := w.awaitPod("web", "shows what the provider says", func(pod *corev1.Pod) bool { return strings.Contains(pod.Status.Message, "[redacted]") })
	seen["the pod"] = shown.String()
	p.sick.Store(true)
	sick := w.awaitNode("says why it is not ready", func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return strings.Contains(c.Message, "[redacted]") })
	})
	p.sick.Store(false)
	seen["the node"] = sick.String()
	w.remove("web", metav1.DeleteOptions{})
	w.awaitGone("web", pod.UID)
	w.awaitEmptyBackend()
	w.awaitEvents("ProviderCreateFailed", "ProviderUpdateFailed", "ProviderDeleteFailed")

	events, err := w.client().CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		seen["the events"] += e.String()
		if len(e.Message) > 1024 {
			t.Errorf("event %s has %d bytes, want 1024 at most", e.Reason, len(e.Message))
		}
	}
	for _, c := range append(slices.Clone(shown.Status.Conditions), corev1.PodCondition{Message: shown.Status.Message}) {
		if len(c.Message) > 1024 {
			t.Errorf("the pod's condition %q has %d bytes, want 1024 at most", c.Type, len(c.Message))
		}
	}
	seen["the log"], seen["the spans"] = w.said.String(), fmt.Sprintf("%+v", spans.GetSpans())
	for _, e := range w.api.Audit(t, "system:node:"+w.nodeName) {
		seen["the audit log"] += audited(e)
	}
	for where, text := range seen {
		for _, secret := range secrets {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret))} {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s has a secret: …%s…", where, text[max(0, at-200):min(len(text), at+40)])
				}
			}
		}
	}
	for _, where := range []string{"the events", "the log", "the spans", "the audit log", "the pod", "the node", "kubectl exec fail", "/containerLogs/" + w.key("web") + "/main", "/runningpods/"} {
		if !strings.Contains(seen[where], "[redacted]") {
			t.Errorf("%s shows nothing of what the provider said, so this test shows nothing: %.300s", where, seen[where])
		}
	}
	for _, where := range []string{"/pods", "/metrics"} {
		if !strings.Contains(seen[where], "web") && !strings.Contains(seen[where], "virtual_kubelet") {
			t.Errorf("%s shows nothing: %.300s", where, seen[where])
		}
	}
}

// audited returns the text of an audit event. It leaves out the answers that rightly contain secrets: Secrets
// and tokens.
func audited(e auditv1.Event) string {
	text := e.RequestURI + " " + fmt.Sprint(e.Annotations)
	if e.ObjectRef != nil && (e.ObjectRef.Resource == "secrets" || e.ObjectRef.Subresource == "token") {
		return text
	}
	if e.RequestObject != nil {
		text += string(e.RequestObject.Raw)
	}
	if e.ResponseObject != nil {
		text += string(e.ResponseObject.Raw)
	}
	return text + "\n"
}
