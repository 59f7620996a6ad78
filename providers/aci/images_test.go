// SPDX-License-Identifier: Apache-2.0

package aci

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
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
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	emulated "github.com/virtual-kubelet/virtual-kubelet/providertest/emulator/aci"
)

// images is a registry that wants a password for one of its images.
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
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	im.host, im.http = strings.TrimPrefix(s.URL, "https://"), s.Client().Transport
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

// credentials let a pod pull from the registry.
type credentials struct{ host, password string }

// PullCredentials implements node.PullCredentials.
func (c credentials) PullCredentials(context.Context, *corev1.Pod) ([]node.RegistryCredential, error) {
	return []node.RegistryCredential{{Registry: c.host, Username: "u", Password: c.password}}, nil
}

// TestArgumentsAlone get the command of the image in front, which is read once.
func TestArgumentsAlone(t *testing.T) {
	im := startImages(t)
	a := testAzure(t)
	p := a.provider(t, nil)
	p.entrypoints.transport = im.http
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
	plain := &entrypoints{transport: http.DefaultTransport}
	if _, err := plain.of(t.Context(), "127.0.0.1:1/x", nil); err == nil || !strings.Contains(err.Error(), "without TLS") {
		t.Errorf("a registry on this machine: %v", err)
	}
}

// TestIdentities log in without a secret: by the token of a service account, and by the identity of the machine.
func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		who    emulated.Principal
		config func(dir string, c *Config)
	}{
		"a workload identity": {emulated.Principal{Tenant: tenant, Client: clientID, Assertion: "assertion-1"}, func(dir string, c *Config) {
			c.Credentials = Credentials{TenantID: tenant, ClientID: clientID, TokenFile: dir + "/token"}
		}},
		"the identity of the machine": {emulated.Principal{Client: clientID, Machine: true}, func(_ string, c *Config) { c.Credentials = Credentials{} }},
		"one of several":              {emulated.Principal{Client: clientID, Machine: true}, func(_ string, c *Config) { c.Credentials = Credentials{IdentityClientID: clientID} }},
	} {
		t.Run(name, func(t *testing.T) {
			a := testAzure(t)
			a.Principal(c.who, true)
			t.Setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", a.url)
			dir := t.TempDir()
			write(t, dir+"/token", "assertion-1")
			if err := a.provider(t, func(conf *Config) { c.config(dir, conf) }).Examine(t.Context()); err != nil {
				t.Error(err)
			}
			a.Principal(emulated.Principal{Tenant: "other", Client: "other", Secret: "other"}, true)
			if err := a.provider(t, func(conf *Config) { c.config(dir, conf) }).Examine(t.Context()); err == nil {
				t.Error("another identity is let in")
			}
		})
	}
}

// TestSeccompProfiles are files of this machine that the configuration names.
func TestSeccompProfiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/own.json", `{"defaultAction": "SCMP_ACT_ERRNO"}`)
	write(t, dir+"/default.json", `{"defaultAction": "SCMP_ACT_LOG"}`)
	write(t, dir+"/bad.json", `{`)
	both := Seccomp{Directory: dir, RuntimeDefault: dir + "/default.json"}
	profile := func(kind corev1.SeccompProfileType, file string) *corev1.SeccompProfile {
		p := &corev1.SeccompProfile{Type: kind}
		if file != "" {
			p.LocalhostProfile = &file
		}
		return p
	}
	for name, c := range map[string]struct {
		from      Seccomp
		pod, main *corev1.SeccompProfile
		want      string // of the message, or the beginning of the profile in base64
		err       bool
	}{
		"none":                   {both, nil, nil, "", false},
		"unconfined":             {Seccomp{}, profile("Unconfined", ""), nil, "", false},
		"of the pod":             {both, profile("RuntimeDefault", ""), nil, "eyJkZWZhdWx0QWN0aW9uIjogIlNDTVBfQUNUX0xPRyJ9", false},
		"of the container":       {both, profile("RuntimeDefault", ""), profile("Localhost", "own.json"), "eyJkZWZhdWx0QWN0aW9uIjogIlNDTVBfQUNUX0VSUk5PIn0=", false},
		"no default":             {Seccomp{Directory: dir}, profile("RuntimeDefault", ""), nil, "name seccomp.runtimeDefault", true},
		"no directory":           {Seccomp{}, nil, profile("Localhost", "own.json"), "name seccomp.directory", true},
		"outside of it":          {both, nil, profile("Localhost", "../own.json"), "want RuntimeDefault", true},
		"not there":              {both, nil, profile("Localhost", "none.json"), "cannot be read", true},
		"no JSON":                {both, nil, profile("Localhost", "bad.json"), "no JSON", true},
		"of a kind that is none": {both, nil, profile("Other", ""), "want RuntimeDefault", true},
	} {
		r := whole()
		r.pod.Spec.SecurityContext.SeccompProfile = c.pod
		r.pod.Spec.Containers[0].SecurityContext.SeccompProfile = c.main
		got, err := c.from.profileOf(r.pod, &r.pod.Spec.Containers[0], field.NewPath("spec", "containers").Index(0))
		if c.err && (err == nil || !strings.Contains(err.Error(), c.want)) || !c.err && (err != nil || got != c.want) {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil {
			continue
		}
		r.seccomp = map[string]string{"main": got}
		group, err := testMapping(t).group(r)
		if err != nil || value(group.Properties.Containers[0].Properties.SecurityContext.SeccompProfile) != c.want {
			t.Errorf("%s: the group has another profile, %v", name, err)
		}
	}
	asks := programPod("u-1", stays)
	asks.Spec.SecurityContext = &corev1.PodSecurityContext{SeccompProfile: profile("RuntimeDefault", "")}
	for declared, conf := range map[bool]Config{true: {Seccomp: both}, false: {}} {
		if lacks := conf.Capabilities().Check(asks); len(lacks) == 0 != declared {
			t.Errorf("with %+v it is refused: %v", conf.Seccomp, lacks)
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
