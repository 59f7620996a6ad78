// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"fmt"
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
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providers/emulator/aci"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// provider is a service provider together with its driver.
type provider struct {
	*service.Provider[instance]
	driver *driver
}

// open returns the provider of a configuration.
func open(in cli.ProviderInput, c Config, at pace) (*provider, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	d, err := newDriver(in, c, at)
	if err != nil {
		return nil, err
	}
	return &provider{d.kit, d}, nil
}

// provider returns a provider on the emulator, without background work.
func (a *azure) provider(t *testing.T, change func(*Config)) *provider {
	t.Helper()
	conf := a.config("home-1")
	if change != nil {
		change(&conf)
	}
	in := cli.ProviderInput{ProviderConfig: nodeutil.ProviderConfig{Node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "aci"}}, Pods: a.pods}, NodeName: "aci"}
	p, err := open(in, conf, pace{busy: 20 * time.Millisecond, rest: 20 * time.Millisecond, follow: 20 * time.Millisecond, eager: true})
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
	now, _, ok := p.Cache().Get(pod.UID)
	if !ok {
		return ""
	}
	return now.Status.Phase
}

// refuses returns a handler that answers each request with an error of the resource manager.
func refuses(status int, code string, header map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error": {"code": "` + code + `", "message": "no"}}`))
	}
}

// TestCreatesThatAreRefused makes mistakes that only a create shows.
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
		"a quota of requests": {fault: func(a *azure) {
			a.Limits = []emulated.Limit{{Operations: []string{"Create"}, Requests: 0, Per: time.Hour}}
		}, want: "429"},
		"a quota of groups": {fault: func(a *azure) { a.Quota = -1 }, want: "raise the quota"},
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

// TestLeastRights removes each action from the role in turn. Some request is then refused with a clear error, so
// every action is needed.
func TestLeastRights(t *testing.T) {
	for _, action := range role {
		t.Run(action, func(t *testing.T) {
			a := testAzure(t)
			p := a.provider(t, func(c *Config) { c.Identities = []string{reader} }).run(t)
			first := programPod("u-1", program.Program{Stay: program.Forever})
			if err := p.CreatePod(t.Context(), first); err != nil {
				t.Fatalf("with the whole role: %v", err)
			}
			until(t, "the pod to run", func() bool { return p.phase(first) == corev1.PodRunning })
			a.Permit(without(action))
			var err error
			switch action {
			case emulated.ActionRead:
				err = p.Examine(t.Context())
			case emulated.ActionWrite, emulated.ActionJoin:
				err = p.CreatePod(t.Context(), programPod("u-2", program.Program{}))
			case emulated.ActionAssign:
				pod := programPod("u-2", program.Program{})
				pod.Annotations = map[string]string{AnnotationIdentity: reader}
				err = p.CreatePod(t.Context(), pod)
			case emulated.ActionDelete:
				err = p.DeletePod(t.Context(), first)
			case emulated.ActionStop:
				err = p.driver.client.stop(t.Context(), value(p.driver.groups.one().Name))
			case emulated.ActionRestart:
				err = p.driver.client.restart(t.Context(), value(p.driver.groups.one().Name))
			case emulated.ActionLogs:
				_, err = p.driver.client.logs(t.Context(), value(p.driver.groups.one().Name), "main", 1)
			case emulated.ActionExec:
				err = p.RunInContainer(t.Context(), "ns", first.Name, "main", []string{"true"}, &terminal{})
			case emulated.ActionSubnet:
				err = p.Examine(t.Context())
			case emulated.ActionUsage:
				_, _, err = p.driver.client.quota(t.Context(), p.driver.config.Region)
			case emulated.ActionMetrics:
				_, err = p.GetStatsSummary(t.Context())
			}
			if err == nil || !strings.Contains(err.Error(), action) {
				t.Errorf("got %v, want it to name the action", err)
			}
		})
	}
}

// TestASecretIsReplaced replaces the secret of the service principal while the provider runs. The next token is
// requested with the new secret.
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

// TestWhatACreateThatFailedMayHaveMade checks that after a failure of ACI, which may have made a group, a delete
// does not report that there is none. A refusal of ACI has made no group.
func TestWhatACreateThatFailedMayHaveMade(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	for status, gone := range map[int]bool{
		http.StatusServiceUnavailable: false, http.StatusInternalServerError: false, http.StatusRequestTimeout: false,
		http.StatusConflict: true, http.StatusTooManyRequests: true, http.StatusForbidden: true,
	} {
		pod := programPod(fmt.Sprint(status), stays)
		a.front.Break(emulator.Fault{Operations: []string{"Create"}, Times: 1, Answer: refuses(status, "ContainerGroupQuotaReached", nil)})
		if err := p.CreatePod(t.Context(), pod); err == nil {
			t.Fatal("it was created")
		}
		err := p.DeletePod(t.Context(), pod)
		if _, later := errdefs.RetryAfterOf(err); err == nil || errdefs.IsNotFound(err) != gone || later == gone {
			t.Errorf("a create that was answered %d, then a delete: got %v", status, err)
		}
	}
}

// TestThrottledCreates checks that a throttled create is retried when ACI allows it.
func TestThrottledCreates(t *testing.T) {
	a := testAzure(t)
	a.Limits = []emulated.Limit{{Operations: []string{"Create"}, Requests: 1, Per: 2 * time.Second}}
	p := a.provider(t, nil).run(t)
	if err := p.CreatePod(t.Context(), programPod("u-1", stays)); err != nil {
		t.Fatal(err)
	}
	second := programPod("u-2", stays)
	err := p.CreatePod(t.Context(), second)
	after, says := errdefs.RetryAfterOf(err)
	if err == nil || !says || after <= 0 || after > 2*time.Second {
		t.Fatalf("got %v, again after %s", err, after)
	}
	timer := time.NewTimer(after)
	<-timer.C
	if err := p.CreatePod(t.Context(), second); err != nil {
		t.Error(err)
	}
}

// TestPodThatListsAreLateToShowAfterARestart checks that a pod is known as soon as the node mentions it, and
// that its status is reported then.
func TestPodThatListsAreLateToShowAfterARestart(t *testing.T) {
	a := testAzure(t)
	before := a.provider(t, nil).run(t)
	if err := a.Stale(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	pod, other := programPod("u-1", program.Program{Stay: program.Forever}), programPod("u-2", program.Program{})
	if err := before.CreatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	after := a.provider(t, nil).run(t)
	if err := after.Cache().Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := after.UpdatePod(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := after.UpdatePod(t.Context(), other); !errdefs.IsNotFound(err) {
		t.Errorf("a pod that ACI does not have: got %v", err)
	}
	if _, _, known := after.Cache().Get(other.UID); known {
		t.Error("a pod that ACI does not have is known")
	}
	if _, _, known := after.Cache().Get(pod.UID); !known {
		t.Fatal("the pod is not known")
	}
	until(t, "the pod to run", func() bool { return after.phase(pod) == corev1.PodRunning })
}

// TestGroupsThatAreThereDoNotChange checks that the emulator refuses, like ACI, a change of the size of a group,
// and any change of a group that is being deleted.
func TestGroupsThatAreThereDoNotChange(t *testing.T) {
	a := testAzure(t)
	p := a.provider(t, nil).run(t)
	pod := programPod("u-1", stays)
	name := p.driver.groups.owner.Name(identity.Of(pod))
	create := func(cpu string) error {
		pod.Spec.Containers[0].Resources.Requests = list(cpu, "1G")
		_, err := p.driver.client.create(t.Context(), name, groupOf(t, p, pod))
		return err
	}
	if err := create("1"); err != nil {
		t.Fatal(err)
	}
	if err := create("1"); err != nil {
		t.Errorf("the same again: %v", err)
	}
	if err := create("2"); err == nil || !strings.Contains(err.Error(), "400 InvalidContainerGroupUpdate") {
		t.Errorf("another size: got %v", err)
	}
	if err := p.driver.client.delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if err := create("1"); err == nil || !strings.Contains(err.Error(), "409 ContainerGroupTransitioning") {
		t.Errorf("while it is deleted: got %v", err)
	}
}
