// SPDX-License-Identifier: Apache-2.0

package stackpath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/config"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/stackpath"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

func faultOf(operation string, answer http.HandlerFunc) emulator.Fault {
	return emulator.Fault{Operations: []string{operation}, Answer: answer}
}

// TestKilledBetweenCreateAndAnswer: in each of 100 rounds, the process ends after the service has made a workload and before the response arrives.
// The next process finds the workload, and does not make another one.
func TestKilledBetweenCreateAndAnswer(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.config.idle, h.config.busy = 20*time.Millisecond, 20*time.Millisecond
	for round := range 100 {
		p, stop := h.start()
		pod := h.Pod("default", fmt.Sprint("web-", round), stays())
		pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
		if err := h.Pods.Add(pod); err != nil {
			t.Fatal(err)
		}
		h.region.front.Break(emulator.Fault{Operations: []string{"CreateWorkload"}, Times: 1, Lose: true})
		if err := p.CreatePod(t.Context(), pod.DeepCopy()); err == nil {
			t.Fatal("the create has an answer")
		}
		stop()
		p, stop = h.start()
		h.Until("the pod is made", func() (bool, string) {
			err := p.CreatePod(t.Context(), pod.DeepCopy())
			return err == nil, errorText(err)
		})
		if n := len(h.region.Workloads(identity.TagUID, string(pod.UID))); n != 1 {
			t.Fatalf("round %d: the pod has %d workloads", round, n)
		}
		h.Delete(p, pod)
		stop()
		if err := h.Pods.Delete(pod); err != nil {
			t.Fatal(err)
		}
	}
	created := 0
	for _, r := range h.region.front.Requests("CreateWorkload") {
		if strings.Contains(string(r.Body), `"slug"`) {
			created++
		}
	}
	if created != 100 {
		t.Errorf("%d creates for 100 pods", created)
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestTokens: a token is used until it is about to expire. A token that is valid for two seconds is replaced that often.
func TestTokens(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p := h.open()
	for range 5 {
		if _, err := p.driver.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(h.region.front.Requests("Token")); n != 1 {
		t.Errorf("5 lists took %d tokens", n)
	}
	short := newHome(t)
	short.region.TokenLife = 2 * time.Second
	p = short.open()
	var last error
	for begin := time.Now(); time.Since(begin) < 3*time.Second; {
		if _, err := p.driver.List(t.Context()); err != nil {
			last = err
		}
	}
	if last != nil {
		t.Errorf("with tokens of 2 s: %v", last)
	}
}

// TestErrorsHaveKinds checks the kind of each refusal, by code and details.
func TestErrorsHaveKinds(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   string // kinds
		says   string
	}{
		{"a field that is wrong", 400, `{"code":3,"message":"m","details":[{"@type":"stackpath.rpc.BadRequest","fieldViolations":[{"field":"workload.slug","description":"too long"}]}]}`, "invalid", "workload.slug: too long"},
		{"a precondition", 400, `{"code":9,"message":"the account is suspended"}`, "", "suspended"},
		{"no such workload", 404, `{"code":5,"message":"m","details":[{"@type":"stackpath.rpc.RequestInfo","requestId":"r-1"}]}`, "not-found", "(request r-1)"},
		{"a proxy that knows no path", 404, `<html>`, "", "look at stackID"},
		{"no right", 403, `{"code":7,"message":"m"}`, "", "look at stackID, and at the rights of the client"},
		{"throttled", 429, `{"code":8,"details":[{"@type":"stackpath.rpc.RetryInfo","retryDelay":"15s"}]}`, "later 15s", ""},
		{"throttled, without a time", 429, ``, "later 10s", ""},
		{"a quota", 400, `{"code":8,"details":[{"@type":"stackpath.rpc.QuotaFailure","violations":[{"subject":"stack","description":"20 workloads"}]}]}`, "later 10s", "stack: 20 workloads"},
		{"away for a while", 503, `{"code":14,"details":[{"@type":"stackpath.rpc.RetryInfo","retryDelay":"2.5s"}]}`, "later 2.5s", ""},
		{"an error of the service", 500, `{"code":13,"message":"m"}`, "", "500"},
	} {
		err := errorOf("GET /x", c.status, []byte(c.body))
		got := ""
		after, later := errdefs.RetryAfterOf(err)
		switch {
		case later:
			got = "later " + after.String()
		case errdefs.IsInvalidInput(err):
			got = "invalid"
		case errdefs.IsNotFound(err):
			got = "not-found"
		}
		if got != c.want || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %q, %v, want %q, %q", c.name, got, err, c.want, c.says)
		}
	}
}

// TestDoctor: for each mistake, the command doctor reports what to do.
func TestDoctor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		seed  func(h *home)
		wants string // "": all is well
	}{
		{"no mistake", func(*home) {}, ""},
		{"another secret", func(h *home) { h.region.ClientSecret = "other" }, "look at clientSecret"},
		{"another client", func(h *home) { h.config.ClientID = "client-2" }, "look at clientID and endpoint"},
		{"another stack", func(h *home) { h.config.StackID = "stack-2" }, "look at stackID, and at the rights"},
		{"a city that is none", func(h *home) { h.config.CityCode = "QQQ" }, `cityCode: QQQ is none of the locations ["ORD" "AMS"]`},
		{"nobody listens at the console", func(h *home) { h.region.ssh.Close() }, "connection refused"},
		{"an authority that is not known", func(h *home) { h.next = http.DefaultTransport.(*http.Transport).Clone() }, "certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			c.seed(h)
			err := h.open().Examine(t.Context())
			if c.wants == "" && err != nil || c.wants != "" && (err == nil || !strings.Contains(err.Error(), c.wants)) {
				t.Errorf("it says: %v; want %q", err, c.wants)
			}
			if err != nil && strings.Contains(err.Error(), clientSecret) {
				t.Errorf("it says the secret: %v", err)
			}
		})
	}
}

// TestLoginThatFailsIsNoAnswerAboutPods: for some time, the client is unknown, with the error of a missing workload. No pod is lost.
func TestLoginThatFailsIsNoAnswerAboutPods(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.region.TokenLife = time.Second
	p, _ := h.start()
	pod := h.Pod("default", "web", stays())
	h.Create(p, pod)
	h.UntilRuns(p, pod)
	mend := h.region.front.Break(faultOf("Token", stackpath.Refuse(http.StatusNotFound, 5, "there is no such client")))
	h.Until("the node says so", func() (bool, string) {
		err := p.Ping(t.Context())
		return err != nil && strings.Contains(err.Error(), "look at clientID"), errorText(err)
	})
	if got, err := p.GetPod(t.Context(), "default", "web"); err != nil || got.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is lost with the login: %v, %v", got, err)
	}
	other := h.Pod("default", "other", stays())
	if err := p.CreatePod(t.Context(), other); err == nil || errdefs.IsInvalidInput(err) || errdefs.IsNotFound(err) {
		t.Errorf("a create without a login: %v", err)
	}
	mend()
	h.Until("the node is well", func() (bool, string) { err := p.Ping(t.Context()); return err == nil, errorText(err) })
	h.UntilRuns(p, pod)
}

// TestListThatIsCutIsAnError: broken pages and truncated responses lose no pods.
func TestListThatIsCutIsAnError(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	d := h.open().driver
	for _, text := range []string{
		`{"pageInfo":{"hasNextPage":true,"endCursor":""},"results":[]}`, `{"pageInfo":{"hasNextPage":true,"endCursor":"c"},"results":[]}`, `{"results":[{"id":`, `[]`,
	} {
		mend := h.region.front.Break(faultOf("GetWorkloads", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }))
		if all, err := d.List(t.Context()); err == nil {
			t.Errorf("%s: a list of %d", text, len(all))
		}
		mend()
	}
}

// cutAt is a transport whose responses fail after their first bytes. Logins succeed.
type cutAt struct{ err error }

// RoundTrip implements http.RoundTripper.
func (c cutAt) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.MultiReader(strings.NewReader(`{"workload":{"id":`), iotest.ErrReader(c.err))
	if r.URL.Path == tokenPath {
		body = strings.NewReader(`{"access_token":"t","token_type":"bearer","expires_in":3600}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body), Request: r}, nil
}

// TestCutAnswerKeepsItsCause: a timeout in the middle of a response is not reported as a wrong format.
func TestCutAnswerKeepsItsCause(t *testing.T) {
	c := newClient(Config{Endpoint: "https://stackpath.test", ClientID: "client-1", ClientSecret: config.Literal(clientSecret)}, cutAt{context.DeadlineExceeded})
	var answer struct{ Workload workload }
	if err := c.call(t.Context(), http.MethodGet, "/workload", nil, &answer); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestOneInstanceOfMany: while the service moves an instance, there are two instances, and the remaining one is the pod.
func TestOneInstanceOfMany(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, results, want string }{
		{"the older one goes", `{"name":"a","phase":"DELETING","createdAt":"2026-01-01T00:00:00Z"},{"name":"b","phase":"STARTING","createdAt":"2026-01-02T00:00:00Z"}`, "b"},
		{"and is told last", `{"name":"b","phase":"STARTING","createdAt":"2026-01-02T00:00:00Z"},{"name":"a","phase":"DELETING","createdAt":"2026-01-01T00:00:00Z"}`, "b"},
		{"the younger one goes", `{"name":"a","phase":"RUNNING","createdAt":"2026-01-01T00:00:00Z"},{"name":"b","phase":"DELETING","createdAt":"2026-01-02T00:00:00Z"}`, "a"},
		{"both stay", `{"name":"b","phase":"RUNNING","createdAt":"2026-01-02T00:00:00Z"},{"name":"a","phase":"RUNNING","createdAt":"2026-01-01T00:00:00Z"}`, "b"},
		{"none", ``, ""},
	} {
		h := newHome(t)
		h.region.front.Break(faultOf("GetWorkloadInstances", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"results":[` + c.results + `]}`))
		}))
		got, _, err := h.open().driver.readInstance(t.Context(), "w")
		if err != nil || got == nil && c.want != "" || got != nil && got.Name != c.want {
			t.Errorf("%s: got %+v, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestSlugOfAWorkloadThatGoes: a lost pod is created again after its workload is gone, and does not adopt the workload that is being deleted.
func TestSlugOfAWorkloadThatGoes(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	pod := h.Pod("default", "web", program.Program{Print: []string{"begun"}, Stay: program.Forever, Deaf: true})
	pod.Spec.TerminationGracePeriodSeconds = new(int64(2))
	h.Create(p, pod)
	pod = h.UntilRuns(p, pod).DeepCopy()
	was, err := h.region.one(pod)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.driver.Stop(t.Context(), pod, seen{workload: workload{ID: was}}); err != nil { // another client deletes the workload
		t.Fatal(err)
	}
	if _, found, err := p.driver.Find(t.Context(), pod); found || err != nil {
		t.Errorf("a workload that goes is found for a pod that is to run: %t, %v", found, err)
	}
	stopping := pod.DeepCopy()
	stopping.DeletionTimestamp = new(metav1.Now())
	if s, found, err := p.driver.Find(t.Context(), stopping); !found || err != nil || s.instance == nil {
		t.Errorf("and not for one that is to stop: %t, %v", found, err)
	}
}

// TestInitContainerRunsFirst: the containers of the pod start after the init container has ended, and its exit code is reported.
func TestInitContainerRunsFirst(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	p.UsePodObjects(&emulator.Objects{}) // needed for init containers
	pod := h.Pod("default", "web", stays())
	does := program.Program{Print: []string{"prepared"}, Stay: 200 * time.Millisecond}
	pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "program", Args: does.Args()}}
	h.Create(p, pod)
	got := h.UntilRuns(p, pod).Status
	init := got.InitContainerStatuses[0].State.Terminated
	if init == nil || init.ExitCode != 0 || !got.InitContainerStatuses[0].Ready || init.FinishedAt.After(got.ContainerStatuses[0].State.Running.StartedAt.Time) {
		t.Errorf("got %+v, and the container %+v", init, got.ContainerStatuses[0].State.Running)
	}
}

// TestWorkloadIsShownWhileItIsDeleted: the emulator reads a workload while another request deletes it. The race detector finds reads without the
// lock.
func TestWorkloadIsShownWhileItIsDeleted(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	p, _ := h.start()
	for n := range 50 {
		pod := h.Pod("default", fmt.Sprint("web-", n), stays())
		h.Create(p, pod)
		id, err := h.region.one(pod)
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for _, request := range []func() error{
			func() error { return p.driver.Stop(t.Context(), pod, seen{workload: workload{ID: id}}) },
			func() error { _, _, err := p.driver.readInstance(t.Context(), id); return err },
			func() error {
				return p.driver.client.call(t.Context(), http.MethodGet, p.driver.workloadPath(id), nil, nil)
			},
		} {
			all.Go(func() {
				if err := request(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}
