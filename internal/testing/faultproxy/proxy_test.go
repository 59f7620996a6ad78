// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// fixture is a proxy in front of a server that answers as an API server does.
type fixture struct {
	*testing.T
	*Proxy
	client kubernetes.Interface
	sent   chan string // the credentials and query of each request that reached the server
	events chan string // names of the pods of a watch
}

const patience = time.Minute

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t, sent: make(chan string, 100), events: make(chan string)}
	server := httptest.NewUnstartedServer(f)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	proxy, err := Start(&rest.Config{Host: server.URL, BearerToken: "proxy's", TLSClientConfig: rest.TLSClientConfig{CAData: ca}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	f.Proxy = proxy
	f.client = f.newClient(proxy.Config())
	return f
}

// ServeHTTP answers as an API server.
func (f *fixture) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	f.sent <- req.Header.Get("Authorization") + " " + req.URL.RawQuery
	w.Header().Set("Content-Type", "application/json")
	if req.URL.Query().Get("watch") == "" {
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1"}`)
		return
	}
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case name := <-f.events:
			fmt.Fprintf(w, `{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q}}}`, name)
		case <-req.Context().Done():
			return
		}
	}
}

func (f *fixture) newClient(config *rest.Config) kubernetes.Interface {
	f.Helper()
	config.Timeout = patience
	config.Dial = nil
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		f.Fatal(err)
	}
	return client
}

func (f *fixture) list() error {
	_, err := f.client.CoreV1().Pods("ns").List(f.Context(), metav1.ListOptions{})
	return err
}

func (f *fixture) mustList() {
	f.Helper()
	if err := f.list(); err != nil {
		f.Fatalf("list: %v", err)
	}
}

func (f *fixture) watch() watch.Interface {
	f.Helper()
	w, err := f.client.CoreV1().Pods("ns").Watch(f.Context(), metav1.ListOptions{})
	if err != nil {
		f.Fatalf("watch: %v", err)
	}
	f.Cleanup(w.Stop)
	return w
}

func (f *fixture) next(w watch.Interface) watch.Event {
	f.Helper()
	select {
	case event := <-w.ResultChan():
		return event
	case <-time.After(patience):
		f.Fatal("the watch says nothing")
		return watch.Event{}
	}
}

// ended waits for the end of a watch. The watch may report the reason of its end, and no other event.
func (f *fixture) ended(w watch.Interface) {
	f.Helper()
	for event := f.next(w); event.Type != ""; event = f.next(w) {
		if event.Type != watch.Error {
			f.Errorf("got %v, want the end of the watch", event)
		}
	}
}

func TestForwardsWithItsOwnCredentialsOrTheClients(t *testing.T) {
	f := newFixture(t)
	f.mustList()
	if got := <-f.sent; got != "Bearer proxy's " {
		t.Errorf("credentials: got %q, want the proxy's", got)
	}
	config := f.Config()
	config.BearerToken = "client's"
	f.client = f.newClient(config)
	f.mustList()
	if got := <-f.sent; got != "Bearer client's " {
		t.Errorf("credentials: got %q, want the client's", got)
	}
}

func TestWatchStreamsUntilItIsCut(t *testing.T) {
	f := newFixture(t)
	w := f.watch()
	for _, name := range []string{"a", "b"} {
		f.events <- name
		if pod, ok := f.next(w).Object.(*corev1.Pod); !ok || pod.Name != name {
			t.Errorf("got %v, want pod %s", pod, name)
		}
	}
	if n := f.CutWatches(Is("services")); n != 0 {
		t.Errorf("%d watches of services were cut, there are none", n)
	}
	if n := f.CutWatches(Is("pods")); n != 1 {
		t.Errorf("%d watches were cut, want 1", n)
	}
	f.ended(w)
	f.mustList() // only the watch was cut
}

func TestAnswersInPlaceOfTheServer(t *testing.T) {
	f := newFixture(t)
	for status, is := range map[int]func(error) bool{
		http.StatusTooManyRequests:     apierrors.IsTooManyRequests,
		http.StatusServiceUnavailable:  apierrors.IsServiceUnavailable,
		http.StatusInternalServerError: apierrors.IsInternalError,
		http.StatusGone:                apierrors.IsResourceExpired,
	} {
		remove := f.Inject(Fault{On: Is("pods", "list"), Status: status})
		if err := f.list(); !is(err) {
			t.Errorf("status %d: got %v", status, err)
		}
		remove()
	}
	if n := len(f.sent); n > 0 {
		t.Errorf("%d requests reached the server", n)
	}
	f.mustList()
	injected := f.Count(func(r Request) bool { return r.Injected && r.Status != 0 })
	if passed := f.Count(func(r Request) bool { return !r.Injected && r.Status == http.StatusOK }); injected < 4 || passed != 1 {
		t.Errorf("the record has %d refusals and %d answers: %v", injected, passed, f.Requests(nil))
	}
}

func TestShareAndRetryAfter(t *testing.T) {
	f := newFixture(t)
	defer f.Inject(Fault{Share: 0.5, Status: http.StatusTooManyRequests, RetryAfter: 7 * time.Second})()
	refused := 0
	for range 100 {
		resp := f.get()
		if resp.StatusCode == http.StatusTooManyRequests {
			refused++
			if after := resp.Header.Get("Retry-After"); after != "7" {
				t.Fatalf("Retry-After: got %q", after)
			}
		}
	}
	if refused < 20 || refused > 80 {
		t.Errorf("%d of 100 requests were refused, want about half", refused)
	}
}

// get sends a request without client-go, which would retry by itself.
func (f *fixture) get() *http.Response {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, f.server.URL+"/api/v1/pods", nil)
	if err != nil {
		f.Fatal(err)
	}
	resp, err := f.server.Client().Do(req)
	if err != nil {
		f.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp
}

func TestWatchEndsWithAnErrorEvent(t *testing.T) {
	f := newFixture(t)
	defer f.Inject(Fault{On: Watches, Status: http.StatusGone, InStream: true})()
	event := f.next(f.watch())
	if event.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
		t.Errorf("got %v, want the error that the version is too old", event)
	}
}

func TestSilentWatch(t *testing.T) {
	f := newFixture(t)
	defer f.Inject(Fault{On: Watches, Silent: true})()
	w := f.watch()
	if n := f.CutWatches(nil); n != 1 || len(f.sent) > 0 {
		t.Errorf("%d watches are open and %d reached the server, want 1 and 0", n, len(f.sent))
	}
	f.ended(w)
}

func TestOlderView(t *testing.T) {
	f := newFixture(t)
	defer f.Inject(Fault{Revision: "17"})()
	f.mustList()
	if got := <-f.sent; got != "Bearer proxy's resourceVersion=17&resourceVersionMatch=Exact" {
		t.Errorf("the server was asked for %q", got)
	}
}

func TestDelay(t *testing.T) {
	f := newFixture(t)
	defer f.Inject(Fault{Delay: 300 * time.Millisecond})()
	began := time.Now()
	f.mustList()
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("the list took %v", took)
	}
}

func TestRefuseAndRestore(t *testing.T) {
	f := newFixture(t)
	w := f.watch()
	for range 3 {
		f.Refuse()
		err := f.list()
		for ; err != nil && !errors.Is(err, syscall.ECONNREFUSED); err = f.list() {
			t.Logf("the client had still the old connection: %v", err)
		}
		if err == nil {
			t.Error("got an answer, want a refused connection")
		}
		if err := f.Restore(); err != nil {
			t.Fatal(err)
		}
		f.mustList()
	}
	f.ended(w)
}

func TestReset(t *testing.T) {
	f := newFixture(t)
	w := f.watch()
	if n := f.Reset(); n == 0 {
		t.Error("no connection was reset")
	}
	f.ended(w)
	f.mustList()
}

func TestBlackhole(t *testing.T) {
	f := newFixture(t)
	w := f.watch()
	f.Blackhole()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := f.client.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want no answer", err)
	}
	f.events <- "late"
	select {
	case event := <-w.ResultChan():
		t.Errorf("got %v through the hole", event)
	case <-time.After(200 * time.Millisecond):
	}
	f.Heal()
	if pod, ok := f.next(w).Object.(*corev1.Pod); !ok || pod.Name != "late" {
		t.Errorf("got %v, want what was held back", pod)
	}
}

func TestThrottle(t *testing.T) {
	f := newFixture(t)
	f.mustList()
	f.Throttle(100)
	began := time.Now()
	f.mustList()
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("an answer at 100 bytes a second took %v", took)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("open", func(t *testing.T) {
		f := newFixture(t)
		f.watch()
		f.Inject(Fault{On: Is("pods", "list"), Delay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			_, _ = f.client.CoreV1().Pods("ns").List(ctx, metav1.ListOptions{})
		}()
		if err := f.Await(t.Context(), 1, Is("pods", "list")); err != nil {
			t.Fatal(err)
		}
		f.Blackhole()
		cancel()
		<-asked
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
