// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	served "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"

	"github.com/virtual-kubelet/virtual-kubelet/node"
)

// images is a registry that requires a password for one of its images.
type images struct {
	host string
	asks atomic.Int64
	http http.RoundTripper
}

func startImages(t *testing.T) *images {
	t.Helper()
	im := &images{}
	next := served.New(served.Logger(log.New(io.Discard, "", 0)))
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		im.asks.Add(1)
		_, password, _ := r.BasicAuth()
		if password != "pass" {
			w.Header().Set("WWW-Authenticate", `Basic realm="images"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	im.host, im.http = "images.example", to{strings.TrimPrefix(s.URL, "https://"), s.Client().Transport}
	for repository, entry := range map[string][]string{"tool": {"/tool", "-v"}, "bare": nil} {
		image, err := mutate.Config(empty.Image, v1.Config{Entrypoint: entry, Cmd: []string{"unused"}})
		if err != nil {
			t.Fatal(err)
		}
		ref, err := name.ParseReference(im.host + "/" + repository + ":1")
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image, remote.WithTransport(im.http), remote.WithAuth(&authn.Basic{Username: "u", Password: "pass"})); err != nil {
			t.Fatal(err)
		}
	}
	return im
}

// to is a transport that sends requests for every host to one server, because ACI accepts no login for a
// registry with a port.
type to struct {
	host string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t to) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := r.Clone(r.Context())
	sent.URL.Host = t.host
	answer, err := t.next.RoundTrip(sent)
	if answer != nil {
		answer.Request = r // relative URLs in the answer refer to the requested name
	}
	return answer, err
}

// credentials let a pod pull from the registry.
type credentials struct{ host, password string }

// PullCredentials implements node.PullCredentials.
func (c credentials) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: c.host, Username: "u", Password: c.password}}, nil
}

// TestArgumentsAlone checks that arguments without a command get the command of the image in front, which is
// read once.
func TestArgumentsAlone(t *testing.T) {
	im := startImages(t)
	a := testAzure(t)
	p := a.provider(t, nil)
	p.driver.entrypoints.transport = im.http
	p.UsePullCredentials(credentials{im.host, "pass"})
	p.run(t)
	for image, want := range map[string]string{"tool": `"command":["/tool","-v","a","b"]`, "bare": `"command":["a","b"]`} {
		for _, n := range []string{"1", "2"} {
			pod := programPod(image+n, stays)
			pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
			pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = im.host+"/"+image+":1", nil, []string{"a", "b"}
			before := im.asks.Load()
			if err := p.CreatePod(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			if n == "2" && im.asks.Load() != before {
				t.Error("the registry is asked again")
			}
			all := a.front.Requests("Create")
			if body := string(all[len(all)-1].Body); !strings.Contains(body, want) {
				t.Errorf("image %s: got %s, want %s", image, body, want)
			}
		}
	}
	p.UsePullCredentials(credentials{im.host, "other"})
	pod := programPod("u-9", stays)
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}}
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Command, pod.Spec.Containers[0].Args = im.host+"/other:1", nil, []string{"a"}
	if err := p.CreatePod(t.Context(), pod); err == nil || !strings.Contains(err.Error(), "or write it as command") || strings.Contains(err.Error(), "pass") {
		t.Errorf("an image that cannot be read: %v", err)
	}
	plain := newEntrypoints(http.DefaultTransport)
	if _, err := plain.of(t.Context(), "127.0.0.1:1/tool", nil); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("a registry on this machine: %v", err)
	}
}
