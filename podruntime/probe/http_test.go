// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// asked runs a probe once and returns "outcome: output", or the error.
func asked(t *testing.T, target Target, handler corev1.ProbeHandler) string {
	t.Helper()
	p := New(Config{})
	spec := &corev1.Probe{ProbeHandler: handler, TimeoutSeconds: 5}
	o, output, err := p.askContainer(t.Context(), &probe{spec: spec}, target)
	if err != nil {
		return fmt.Sprintf("%s: %v", o, err)
	}
	return fmt.Sprintf("%s: %s", o, output)
}

func portIn(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(strings.TrimPrefix(strings.TrimPrefix(address, "http://"), "https://"))
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func get(port int, path string, change ...func(*corev1.HTTPGetAction)) corev1.ProbeHandler {
	a := &corev1.HTTPGetAction{Port: intstr.FromInt(port), Path: path}
	for _, f := range change {
		f(a)
	}
	return corev1.ProbeHandler{HTTPGet: a}
}

func TestHTTPOutcomes(t *testing.T) {
	elsewhere := "http://localhost:1/"
	mux := http.NewServeMux()
	for _, code := range []int{200, 204, 299, 400, 404, 500} {
		mux.HandleFunc(fmt.Sprintf("/%d", code), func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			if code >= 400 {
				fmt.Fprint(w, "secret")
			}
		})
	}
	mux.HandleFunc("/near", func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/200", http.StatusFound) })
	mux.HandleFunc("/far", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", elsewhere)
		w.WriteHeader(http.StatusFound)
		fmt.Fprint(w, "over there")
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, "/round", http.StatusFound) })
	mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "part")
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	target := running("a", func(c *corev1.Container) {
		c.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(portIn(t, s.URL))}}
	})
	port := portIn(t, s.URL)
	for _, tc := range []struct{ path, want string }{
		{"/200", "success: "},
		{"204", "success: "},
		{"/299?a=b", "success: "},
		{"/400", "failure: HTTP probe failed with statuscode: 400"},
		{"/404", "failure: HTTP probe failed with statuscode: 404"},
		{"/500", "failure: HTTP probe failed with statuscode: 500"},
		{"/near", "success: "},
		{"/far", "warning: Probe terminated redirects, Response body: over there"},
		{"/round", "failure: Get \"/round\": stopped after 10 redirects"},
		{"/big", "success: "},
		{"/cut", "failure: unexpected EOF"},
	} {
		if got := asked(t, target, get(port, tc.path)); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.path, got, tc.want)
		}
	}
	named := get(0, "/200", func(a *corev1.HTTPGetAction) { a.Port = intstr.FromString("web") })
	if got := asked(t, target, named); got != "success: " {
		t.Errorf("port by name: %s", got)
	}
	named.HTTPGet.Port = intstr.FromString("none")
	if got := asked(t, target, named); got != `unknown: port "none" not found` {
		t.Errorf("port that does not exist: %s", got)
	}
	if got := asked(t, target, get(0, "/")); got != "unknown: invalid port number: 0" {
		t.Errorf("port 0: %s", got)
	}
}

func TestHTTPRequest(t *testing.T) {
	var seen *http.Request
	handler := http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { seen = req })
	plain := httptest.NewServer(handler)
	defer plain.Close()
	secure := httptest.NewUnstartedServer(handler)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()

	if got := asked(t, running("a"), get(portIn(t, plain.URL), "/x")); got != "success: " {
		t.Fatal(got)
	}
	if got := seen.Header; got.Get("User-Agent") != "kube-probe/1.37" || got.Get("Accept") != "*/*" || got.Get("Connection") != "close" || len(got) != 3 {
		t.Errorf("headers %v", got)
	}
	headers := func(a *corev1.HTTPGetAction) {
		a.Scheme, a.Host = corev1.URISchemeHTTPS, "localhost"
		a.HTTPHeaders = []corev1.HTTPHeader{{Name: "Host", Value: "me"}, {Name: "user-agent", Value: "mine"}, {Name: "Accept"}, {Name: "X", Value: "1"}, {Name: "X", Value: "2"}}
	}
	if got := asked(t, running("a"), get(portIn(t, secure.URL), "/x", headers)); got != "success: " {
		t.Fatal(got)
	}
	if h := seen.Header; seen.Host != "me" || h.Get("User-Agent") != "mine" || h.Get("Accept") != "" || len(h["X"]) != 2 || seen.ProtoMajor != 2 {
		t.Errorf("%s: host %q, headers %v", seen.Proto, seen.Host, h)
	}
}

func TestHTTP2WithoutTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.ProtoMajor != 2 {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Config.Protocols.SetHTTP1(true)
	s.Start()
	defer s.Close()
	h2 := func(a *corev1.HTTPGetAction) { a.Protocol = ptr.To(corev1.HTTPProtocolHTTP2) }
	if got := asked(t, running("a"), get(portIn(t, s.URL), "/", h2)); got != "success: " {
		t.Error(got)
	}
	if got := asked(t, running("a"), get(portIn(t, s.URL), "/")); got != "failure: HTTP probe failed with statuscode: 418" {
		t.Error(got)
	}
}

func TestHTTPTimeout(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { <-req.Context().Done() }))
	defer s.Close()
	p := New(Config{})
	o, output, err := p.askHTTP(t.Context(), get(portIn(t, s.URL), "/").HTTPGet, running("a"), 50*time.Millisecond)
	if o != failure || err != nil || !strings.Contains(output, "Client.Timeout exceeded") {
		t.Errorf("got %s %q, %v", o, output, err)
	}
}

func TestSecurityF2LinkLocalAndMetadataAreRefused(t *testing.T) {
	for _, address := range []string{"169.254.169.254", "169.254.1.2", "::ffff:169.254.169.254", "fe80::1", "fe80::1%lo", "fd00:ec2::254", "100.100.100.200", "168.63.129.16"} {
		const want = "is a link-local or metadata address"
		target := running("a")
		host := func(a *corev1.HTTPGetAction) { a.Host = address }
		for kind, handler := range map[string]corev1.ProbeHandler{
			"http": get(80, "/", host),
			"tcp":  {TCPSocket: &corev1.TCPSocketAction{Host: address, Port: intstr.FromInt(80)}},
		} {
			if got := asked(t, target, handler); !strings.Contains(got, want) {
				t.Errorf("%s %s: %s", kind, address, got)
			}
		}
		if err := New(Config{}).Hook(t.Context(), target, &corev1.LifecycleHandler{HTTPGet: get(80, "/", host).HTTPGet}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("hook %s: %v", address, err)
		}
		target.PodIPs = []string{"10.0.0.1", address}
		if err := (dialer{}).checkAddress(net.JoinHostPort(address, "80"), target); err != nil {
			t.Errorf("%s is the pod's own: %v", address, err)
		}
	}
	if err := (dialer{}).checkAddress("10.0.0.1:80", Target{}); err != nil {
		t.Error(err)
	}
}

// TestSecurityF2RedirectToForbiddenAddress: a redirect to the same host is followed. A host name that resolves
// to a forbidden address is refused.
func TestSecurityF2RedirectToForbiddenAddress(t *testing.T) {
	p := New(Config{})
	p.http.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "rebound.test") {
			address = "169.254.169.254:80"
		}
		return (dialer{}).dialTarget(ctx, network, address)
	}
	action := &corev1.HTTPGetAction{Host: "rebound.test", Port: intstr.FromInt(80)}
	o, output, err := p.askHTTP(t.Context(), action, running("a"), time.Second)
	if o != failure || err != nil || !strings.Contains(output, "link-local") {
		t.Errorf("got %s %q, %v", o, output, err)
	}
	via := []*http.Request{{URL: &url.URL{Host: "10.0.0.1:80"}}}
	if err := sameHost(&http.Request{URL: &url.URL{Host: "169.254.169.254"}}, via); err != http.ErrUseLastResponse {
		t.Errorf("a redirect to another host: %v", err)
	}
}
