// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"

	"github.com/virtual-kubelet/virtual-kubelet/internal/testing/testapi"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
)

// needy is a provider that requests every credential that its pods may have.
type needy struct {
	notifying
	got *gotten
}

// gotten records the pods and credentials that a needy provider received.
type gotten struct {
	tokens node.PodTokens
	pulls  node.PullCredentials

	mu      sync.Mutex
	of      map[string][]node.PodToken           // by pod; guarded by mu
	logins  map[string][]node.RegistryCredential // by pod; guarded by mu
	created map[string]*corev1.Pod               // by pod; guarded by mu
}

func (p needy) UsePodTokens(tokens node.PodTokens) { p.got.tokens = tokens }

func (p needy) UsePullCredentials(pulls node.PullCredentials) { p.got.pulls = pulls }

func (p needy) CreatePod(ctx context.Context, pod *corev1.Pod) error {
	if err := p.take(ctx, pod); err != nil {
		return err
	}
	return p.notifying.CreatePod(ctx, pod)
}

// take requests the credentials that the pod may have.
func (p needy) take(ctx context.Context, pod *corev1.Pod) error {
	var tokens []node.PodToken
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken == nil {
				continue
			}
			token, err := p.got.tokens.Token(ctx, pod, source.ServiceAccountToken)
			if err != nil {
				return err
			}
			tokens = append(tokens, token)
		}
	}
	logins, err := p.got.pulls.PullCredentials(ctx, pod)
	if err != nil {
		return err
	}
	p.got.mu.Lock()
	defer p.got.mu.Unlock()
	p.got.of[pod.Name], p.got.logins[pod.Name], p.got.created[pod.Name] = tokens, logins, pod.DeepCopy()
	return nil
}

// newNeedyWorld returns a world in the audited cluster, with a provider that requests every credential.
func newNeedyWorld(t *testing.T) (*world, *gotten) {
	t.Helper()
	w := newWorldIn(t, testapi.StartAudited(t))
	got := &gotten{of: map[string][]node.PodToken{}, logins: map[string][]node.RegistryCredential{}, created: map[string]*corev1.Pod{}}
	w.provider = func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) {
		return needy{notifying{polled{Backend: w.backend, changed: w.changed}}, got}, nil, nil
	}
	return w, got
}

// serve makes the node serve the kubelet API, with its default authentication.
func (w *world) serve() {
	w.Helper()
	credentials, routes := w.api.NodeCredentials(w.T, w.nodeName), &oneHandler{}
	w.opts = append(w.opts,
		nodeutil.WithTLSConfig(nodeutil.WithKeyPairFromPath(credentials.CertFile, credentials.KeyFile), clientCA(w.T, credentials.CAFile)),
		nodeutil.AttachProviderRoutes(routes),
		func(cfg *nodeutil.NodeConfig) error {
			cfg.Handler, cfg.HTTPListenAddr = routes, "127.0.0.1:0"
			cfg.NodeSpec.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
			return nil
		})
}

// askServer requests the node's pods, once with a client certificate and once with a token. The node needs the
// API server's help to judge the token.
func (w *world) askServer() {
	w.Helper()
	served := w.awaitNode("serves", func(n *corev1.Node) bool { return nodeReady(n) && n.Status.DaemonEndpoints.KubeletEndpoint.Port > 0 })
	address := fmt.Sprintf("https://127.0.0.1:%d/pods", served.Status.DaemonEndpoints.KubeletEndpoint.Port)
	token, err := w.client().CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for config, want := range map[*rest.Config]int{w.api.Config: http.StatusOK, bearing(w.api.Config, token.Status.Token): http.StatusForbidden} {
		if got := w.ask(w.T, config, http.MethodGet, address); got != want {
			w.Errorf("GET %s: got status %d, want %d", address, got, want)
		}
	}
}

// needyPod creates a pod with objects of its own: a ConfigMap and a Secret for its environment, a Secret to pull
// with, a service account and a projected token.
func (w *world) needyPod(name string) *corev1.Pod {
	w.Helper()
	core, ctx, meta := w.client().CoreV1(), w.Context(), metav1.ObjectMeta{Name: name}
	pullMeta := metav1.ObjectMeta{Name: name + "-pull"}
	config := fmt.Sprintf(`{"auths":{"registry.example":{"username":"robot","password":%q}}}`, "pull-"+name)
	for _, err := range []error{
		second(core.ConfigMaps(w.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"colour": "blue"}}, metav1.CreateOptions{})),
		second(core.Secrets(w.namespace).Create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": "c4n4ry-env-" + name}}, metav1.CreateOptions{})),
		second(core.Secrets(w.namespace).Create(ctx, &corev1.Secret{ObjectMeta: pullMeta, Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{corev1.DockerConfigJsonKey: config}}, metav1.CreateOptions{})),
		second(core.ServiceAccounts(w.namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}, metav1.CreateOptions{})),
	} {
		if err != nil {
			w.Fatal(err)
		}
	}
	pod := w.pod(name)
	life := int64(700)
	pod.Spec.AutomountServiceAccountToken, pod.Spec.ServiceAccountName = nil, name
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pullMeta.Name}}
	pod.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}},
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "vault", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault", ExpirationSeconds: &life, Path: "token"}}},
	}}}}
	return pod
}

func second[T any](_ T, err error) error { return err }

// needyLives runs pods through their lives: started at once, updated, found again after a restart, deleted, and
// deleted by force.
func (w *world) needyLives(daemon *process) {
	w.Helper()
	names := numbered("needy", 8)
	var pods []*corev1.Pod
	for _, name := range names {
		pods = append(pods, w.needyPod(name))
	}
	for _, pod := range pods { // nothing comes between that could give the authorizer time
		w.create(pod)
	}
	w.awaitRunning(len(names))
	w.annotate(names[0])
	w.awaitBackend("the backend knows of the annotation", func() bool { return w.backend.Count("update "+w.key(names[0])) > 0 })
	w.removeMany(names[:4])
	w.awaitRunning(4)
	w.remove(names[4], atOnce())
	w.awaitBackend("the forced pod has stopped", func() bool { return w.backend.Len() == 3 })
	daemon.stop()
	w.start()
	w.removeMany(names[5:])
	w.awaitNoPods()
	w.awaitEmptyBackend()
	w.awaitEvents("ProviderCreateSuccess", "ProviderDeleteSuccess")
}

// auditUntil returns the user's events in the audit log as soon as done returns true for them.
func (w *world) auditUntil(user, what string, done func([]auditv1.Event) bool) []auditv1.Event {
	w.Helper()
	for deadline := time.Now().Add(patience); ; {
		events := w.api.Audit(w.T, user)
		if done(events) {
			return events
		}
		if time.Now().After(deadline) {
			w.Fatalf("wait until %s: there are %d events in the audit log", what, len(events))
		}
		<-time.After(100 * time.Millisecond)
	}
}

// asked names the object that an event is about.
func asked(e auditv1.Event) string {
	if e.ObjectRef == nil {
		return e.Verb + " " + e.RequestURI
	}
	resource := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		resource += "/" + e.ObjectRef.Subresource
	}
	return e.Verb + " " + resource
}

func about(events []auditv1.Event, what string) bool {
	return slices.ContainsFunc(events, func(e auditv1.Event) bool { return asked(e) == what })
}

func TestSecurityC1ANodeNeedsNoRBAC(t *testing.T) {
	t.Parallel()
	w, got := newNeedyWorld(t)
	w.asNode()
	w.serve()
	daemon := w.start()
	w.askServer()
	w.needyLives(daemon)

	user := "system:node:" + w.nodeName
	events := w.auditUntil(user, "the node has deleted pods", func(all []auditv1.Event) bool { return about(all, "delete pods") })
	for _, what := range []string{"create serviceaccounts/token", "list secrets", "list configmaps", "patch pods/status", "patch nodes/status",
		"update leases", "create events", "create subjectaccessreviews", "create tokenreviews"} {
		if !about(events, what) {
			t.Errorf("the node never asked to %s, so this test does not show that it may", what)
		}
	}
	for _, e := range events {
		if e.ResponseStatus != nil && (e.ResponseStatus.Code == http.StatusForbidden || e.ResponseStatus.Code == http.StatusUnauthorized) {
			t.Errorf("refused: %s %s: %s", e.Verb, e.RequestURI, e.ResponseStatus.Message)
		}
		// Every user may review themselves and read the API's description. No role allows the node anything
		// else.
		if reason := e.Annotations["authorization.k8s.io/reason"]; strings.HasPrefix(reason, "RBAC:") &&
			!strings.Contains(reason, `"system:basic-user"`) && !strings.Contains(reason, `"system:discovery"`) && !strings.Contains(reason, `"system:public-info-viewer"`) {
			t.Errorf("allowed by a role: %s %s: %s", e.Verb, e.RequestURI, reason)
		}
	}
	for pod, tokens := range got.of {
		w.checkTokens(pod, tokens, got.created[pod])
	}
}

// checkTokens checks that the tokens belong to the pod. The first token has the audience and lifetime of the
// test's own volume; the second is the usual token of a service account.
func (w *world) checkTokens(name string, tokens []node.PodToken, pod *corev1.Pod) {
	w.Helper()
	if len(tokens) != 2 {
		w.Fatalf("pod %s got %d tokens, want two", name, len(tokens))
	}
	for i, audience := range []string{"vault", "https://kubernetes.default.svc.cluster.local"} {
		var claims struct {
			Audience   []string `json:"aud"`
			Expires    int64    `json:"exp"`
			Issued     int64    `json:"iat"`
			Kubernetes struct {
				Namespace      string
				Pod            struct{ Name, UID string }
				ServiceAccount struct{ Name string }
			} `json:"kubernetes.io"`
		}
		parts := strings.Split(tokens[i].Token, ".")
		payload, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
		if err == nil {
			err = json.Unmarshal(payload, &claims)
		}
		if err != nil {
			w.Fatalf("read the token of pod %s: %v", name, err)
		}
		if k := claims.Kubernetes; !slices.Equal(claims.Audience, []string{audience}) || k.Namespace != w.namespace ||
			k.Pod.Name != name || k.Pod.UID != string(pod.UID) || k.ServiceAccount.Name != name {
			w.Errorf("token %d of pod %s is for %v, bound to %+v", i, name, claims.Audience, k)
		}
		if i == 0 && claims.Expires-claims.Issued != 700 {
			w.Errorf("token of pod %s lives %d s, want what the volume asks for", name, claims.Expires-claims.Issued)
		}
		if in := time.Until(tokens[i].RefreshAt); in <= 0 || in > time.Duration(claims.Expires-claims.Issued)*time.Second {
			w.Errorf("token of pod %s is to be renewed in %v", name, in)
		}
	}
}

func TestSecurityC2OnlyWhatPodsNameIsRead(t *testing.T) {
	t.Parallel()
	w, _ := newNeedyWorld(t)
	w.asNode()
	w.needyLives(w.start())

	events := w.auditUntil("system:node:"+w.nodeName, "secrets were watched", func(all []auditv1.Event) bool {
		return about(all, "watch secrets") && about(all, "watch configmaps")
	})
	named := map[string]bool{"configmaps": true, "secrets": true}
	for _, e := range events {
		if e.ObjectRef == nil || !named[e.ObjectRef.Resource] {
			continue
		}
		target, err := url.Parse(e.RequestURI)
		if err != nil {
			t.Fatal(err)
		}
		name := e.ObjectRef.Name
		if name == "" {
			name, _ = strings.CutPrefix(target.Query().Get("fieldSelector"), "metadata.name=")
		}
		if e.ObjectRef.Namespace != w.namespace || !strings.HasPrefix(name, "needy-") {
			t.Errorf("read past what pods name: %s %s", e.Verb, e.RequestURI)
		}
	}
}

func TestSecurityC5ATokenOfAPodThatIsGoneIsNotGiven(t *testing.T) {
	t.Parallel()
	w, got := newNeedyWorld(t)
	w.asNode()
	w.start()
	pod := w.startPod(w.needyPod("web"))
	source := pod.Spec.Volumes[0].Projected.Sources[0].ServiceAccountToken
	again, err := got.tokens.Token(t.Context(), pod, source)
	if err != nil || again.Token != got.of["web"][0].Token {
		t.Errorf("asked again, got %v (%v), want the same token", again, err)
	}
	w.remove("web", metav1.DeleteOptions{})
	w.awaitGone("web", pod.UID)
	w.awaitEmptyBackend()
	if token, err := got.tokens.Token(t.Context(), pod, source); err == nil {
		t.Errorf("got %v for a pod that is gone", token)
	}
}

func TestSecurityC6PullCredentialsOfAPodAreItsOwn(t *testing.T) {
	t.Parallel()
	w, got := newNeedyWorld(t)
	w.asNode()
	w.start()
	w.startPod(w.needyPod("one"))
	w.startPod(w.needyPod("two"))
	poor := w.pod("poor")
	poor.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "missing"}}
	w.startPod(poor)
	for name, want := range map[string]string{"one": "pull-one", "two": "pull-two"} {
		if l := got.logins[name]; len(l) != 1 || l[0].Registry != "registry.example" || l[0].Username != "robot" || l[0].Password != want {
			t.Errorf("pod %s: got %v, want its own", name, l)
		}
	}
	if l := got.logins["poor"]; len(l) != 0 {
		t.Errorf("a pod whose Secret is missing got %v", l)
	}
	w.awaitEvents("FailedToRetrieveImagePullSecret")
}
