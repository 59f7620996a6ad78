// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/virtual-kubelet/virtual-kubelet/cli"
	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// provider is one on the emulator, which does not run in the background.
func (a *azure) provider(t *testing.T, change func(*Config)) *provider {
	t.Helper()
	conf := a.config("home-1")
	if change != nil {
		change(&conf)
	}
	conf, err := conf.complete()
	if err != nil {
		t.Fatal(err)
	}
	in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aci"}}}, NodeName: "aci"}
	p, err := newProvider(in, conf, pace{busy: 20 * time.Millisecond, rest: 20 * time.Millisecond, follow: 20 * time.Millisecond, eager: true})
	if err != nil {
		t.Fatal(err)
	}
	p.UsePodObjects(plain{})
	return p
}

// run runs the provider until the test ends.
func (p *provider) run(t *testing.T) *provider {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { _ = p.RunInBackground(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return p
}

func programPod(uid string, does program.Program) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + uid, UID: types.UID(uid)}, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "main", Image: "program", Command: append([]string{"program"}, does.Args()...)}},
	}}
}

// until waits until a condition holds.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	timeout := time.NewTimer(30 * time.Second)
	defer timeout.Stop()
	for !is() {
		select {
		case <-ticker.C:
		case <-timeout.C:
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

func (p *provider) phase(pod *corev1.Pod) corev1.PodPhase {
	now, _, ok := p.cache.Get(pod.UID)
	if !ok {
		return ""
	}
	return now.Status.Phase
}

// refuses answers each request with an error of the resource manager.
func refuses(status int, code string, header map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error": {"code": "` + code + `", "message": "no"}}`))
	}
}

// TestExamine has mistakes in configurations and accounts, as the command doctor finds them: the message says what to do.
func TestExamine(t *testing.T) {
	if err := testAzure(t).provider(t, nil).Examine(t.Context()); err != nil {
		t.Errorf("without a mistake: %v", err)
	}
	for name, c := range map[string]struct {
		config func(*Config)
		fault  func(*azure)
		want   string
	}{
		"another subscription":         {config: func(c *Config) { c.SubscriptionID = "sub-2" }, want: "look at subscriptionID"},
		"a resource group that is not": {config: func(c *Config) { c.ResourceGroup = "none" }, want: "make resourceGroup"},
		"a wrong secret":               {config: func(c *Config) { c.Credentials.ClientSecret = config.Literal("canary-wrong") }, want: "the secret of the service principal is wrong"},
		"a secret that has expired":    {fault: func(a *azure) { a.ExpireSecret() }, want: "has expired"},
		"another client":               {config: func(c *Config) { c.Credentials.ClientID = "client-2" }, want: "credentials.clientID"},
		"another tenant":               {config: func(c *Config) { c.Credentials.TenantID = "tenant-2" }, want: "credentials.tenantID"},
		"a right that is missing":      {fault: func(a *azure) { a.Role = []string{emulated.ActionWrite} }, want: "the role of its README"},
		"no rights yet for ACI": {fault: func(a *azure) { a.answers(refuses(http.StatusConflict, "MissingSubscriptionRegistration", nil))(true) },
			want: "az provider register"},
		"a subscription that is disabled": {fault: func(a *azure) { a.answers(refuses(http.StatusConflict, "ReadOnlyDisabledSubscription", nil))(true) },
			want: "is disabled"},
		"a clock that is wrong": {fault: func(a *azure) {
			a.answers(refuses(http.StatusUnauthorized, "InvalidAuthenticationToken", map[string]string{"Date": time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}))(true)
		}, want: "the clock of this machine"},
		"an authority that is not known": {config: func(c *Config) { c.Cloud.CAFile = "" }, want: "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			a := testAzure(t)
			if c.fault != nil {
				c.fault(a)
			}
			err := a.provider(t, c.config).Examine(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want it to say %q on one line, and no secret", err, c.want)
			}
		})
	}
}

// TestCreatesThatAreRefused has mistakes that only a create shows.
func TestCreatesThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		config func(*Config)
		fault  func(*azure)
		want   string
		final  bool
	}{
		"another region":                 {config: func(c *Config) { c.Region = "westus" }, want: "look at region"},
		"a subnet that is not delegated": {fault: func(a *azure) { a.Subnets = nil }, want: "delegate the subnet"},
		"no right on the subnet": {fault: func(a *azure) {
			a.Role = slices.DeleteFunc(slices.Clone(role), func(s string) bool { return s == emulated.ActionJoin })
		}, want: "on the virtual network"},
		"no right to create": {fault: func(a *azure) { a.Role = []string{emulated.ActionRead} }, want: "the role of its README"},
		"a group that cannot be": {fault: func(a *azure) {
			a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(http.StatusBadRequest, "InvalidImageReference", nil)})
		}, want: "InvalidImageReference", final: true},
		"a busy service": {fault: func(a *azure) {
			a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(http.StatusTooManyRequests, "TooManyRequests", map[string]string{"Retry-After": "17"})})
		}, want: "429"},
		"a quota that is reached": {fault: func(a *azure) {
			a.front.Break(emulator.Fault{Operations: []string{"Create"}, Answer: refuses(http.StatusConflict, "ContainerGroupQuotaReached", nil)})
		}, want: "raise the quota"},
	} {
		t.Run(name, func(t *testing.T) {
			a := testAzure(t)
			if c.fault != nil {
				c.fault(a)
			}
			p := a.provider(t, c.config).run(t)
			err := p.CreatePod(t.Context(), programPod("u-1", program.Program{}))
			if err == nil || !strings.Contains(err.Error(), c.want) || errdefs.IsInvalidInput(err) != c.final {
				t.Errorf("got %v, want %q, final %t", err, c.want, c.final)
			}
			if after, says := errdefs.RetryAfterOf(err); name == "a busy service" && (!says || after != 17*time.Second) {
				t.Errorf("it is tried again after %s, %t", after, says)
			}
		})
	}
}

// TestLeastRights takes each action out of the role: what needs it is refused and says so, so none is there in vain.
func TestLeastRights(t *testing.T) {
	for _, action := range role {
		t.Run(action, func(t *testing.T) {
			a := testAzure(t)
			p := a.provider(t, nil).run(t)
			first := programPod("u-1", program.Program{Stay: program.Forever})
			if err := p.CreatePod(t.Context(), first); err != nil {
				t.Fatalf("with the whole role: %v", err)
			}
			until(t, "the pod to run", func() bool { return p.phase(first) == corev1.PodRunning })
			a.Role = slices.DeleteFunc(slices.Clone(role), func(s string) bool { return s == action })
			var err error
			switch action {
			case emulated.ActionRead:
				err = p.Examine(t.Context())
			case emulated.ActionWrite, emulated.ActionJoin:
				err = p.CreatePod(t.Context(), programPod("u-2", program.Program{}))
			case emulated.ActionDelete:
				err = p.DeletePod(t.Context(), first)
			case emulated.ActionLogs:
				_, err = p.client.logs(t.Context(), value(p.groups.one().Name), "main", 1)
			case emulated.ActionExec:
				err = p.RunInContainer(t.Context(), "ns", first.Name, "main", []string{"true"}, &terminal{})
			}
			if err == nil || !strings.Contains(err.Error(), action) {
				t.Errorf("got %v, want it to name the action", err)
			}
		})
	}
}

// TestASecretIsReplaced has the secret of the service principal change while the provider runs: the next token is asked for with the new one.
func TestASecretIsReplaced(t *testing.T) {
	a := testAzure(t)
	a.TokenLife = time.Second
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(clientSecret)
	var secret config.Secret
	if err := secret.UnmarshalJSON([]byte(`{"file": "` + file + `"}`)); err != nil {
		t.Fatal(err)
	}
	p := a.provider(t, func(c *Config) { c.Credentials.ClientSecret = secret })
	if err := p.Examine(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Principal(emulated.Principal{Tenant: tenant, Client: clientID, Secret: "another-secret"}, true)
	if err := p.Examine(t.Context()); err == nil {
		t.Error("the old secret is good")
	}
	write("another-secret")
	until(t, "the new secret to be used", func() bool { return p.Examine(t.Context()) == nil })
}

// withSecret are objects with one secret for everything.
type withSecret struct{ plain }

const canary = "canary-5f1c"

// Secret implements node.PodObjects.
func (withSecret) Secret(context.Context, *corev1.Pod, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: map[string][]byte{"password": []byte(canary)}}, nil
}

// Container implements node.PodObjects.
func (withSecret) Container(_ context.Context, pod *corev1.Pod, _ string) (*corev1.Container, error) {
	c := pod.Spec.Containers[0].DeepCopy()
	c.Env = []corev1.EnvVar{{Name: "PASSWORD", Value: canary}, {Name: "URL", Value: "https://u:" + canary + "@x"}, {Name: "PLAIN", Value: "green"}}
	return c, nil
}

// PullCredentials implements node.PullCredentials.
func (withSecret) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: "registry.example", Username: "u", Password: canary}}, nil
}

// TestSecretsStayWhereTheyBelong looks for a canary in everything but the fields that are made for it.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil)
	p.UsePodObjects(withSecret{})
	p.UsePullCredentials(withSecret{})
	p.run(t)
	pod := programPod("u-1", program.Program{Stay: program.Forever})
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}
	from := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s"}, Key: "password"}}
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: from}, {Name: "URL", Value: "https://u:$(PASSWORD)@x"}, {Name: "PLAIN", Value: "green"}}
	if err := p.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	until(t, "the pod to run", func() bool { return p.phase(pod) == corev1.PodRunning })
	creates := a.front.Requests("Create")
	if len(creates) != 1 {
		t.Fatalf("%d creates", len(creates))
	}
	body := string(creates[0].Body)
	for _, field := range []string{`"name":"PASSWORD","secureValue":"` + canary + `"`, `"name":"URL","secureValue":"https://u:` + canary + `@x"`, `"password":"` + canary + `"`, `"name":"PLAIN","value":"green"`} {
		if !strings.Contains(body, field) {
			t.Errorf("the group lacks %s", field)
		}
		body = strings.ReplaceAll(body, field, "")
	}
	if strings.Contains(body, canary) {
		t.Errorf("the canary is elsewhere in the group: %s", body)
	}
	for _, r := range a.front.Requests() {
		if r.Operation != "Create" && strings.Contains(string(r.Body), canary) || strings.Contains(r.URL, canary) {
			t.Errorf("the canary is in a request %s", r.Operation)
		}
		for _, values := range r.Header {
			if strings.Contains(strings.Join(values, " "), canary) {
				t.Errorf("the canary is in a header of a request %s", r.Operation)
			}
		}
	}
	shown, _, _ := p.cache.Get(pod.UID)
	if text := shown.String(); strings.Contains(text, canary) {
		t.Errorf("the canary is in the pod: %s", text)
	}
}
