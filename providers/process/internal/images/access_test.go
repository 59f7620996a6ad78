// SPDX-License-Identifier: Apache-2.0

//go:build unix

package images

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// tenancy is a registry whose repositories hold the same image, and a node that has pulled it from the
// repository "private".
type tenancy struct {
	*Store
	t     *testing.T
	host  string
	image v1.Image
	files string // the digest of the layer with the files

	mu     sync.Mutex
	answer func(http.ResponseWriter, *http.Request) bool // guarded by mu: answers a request for a layer instead of the registry if it returns true
	asked  []string                                      // guarded by mu: methods of requests for layers
}

func newTenancy(t *testing.T) *tenancy {
	t.Helper()
	n := &tenancy{t: t, image: testImage(t, "secret")}
	layers, err := n.image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	n.files = digest.String()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if strings.HasSuffix(r.URL.Path, n.files) {
			n.asked = append(n.asked, r.Method)
			if n.answer != nil && n.answer(w, r) {
				return
			}
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	n.host = strings.TrimPrefix(server.URL, "http://")
	n.publish("private", n.image)
	if n.Store, err = Open(t.TempDir(), Options{Insecure: []string{n.host}}); err != nil {
		t.Fatal(err)
	}
	if err := n.pull("private", nil); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *tenancy) publish(repository string, image v1.Image) {
	n.t.Helper()
	ref, err := name.ParseReference(n.host + "/" + repository + "/app:1")
	if err != nil {
		n.t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		n.t.Fatal(err)
	}
}

// pull pulls the image of a repository. The function answer answers the requests for its layers.
func (n *tenancy) pull(repository string, answer func(http.ResponseWriter, *http.Request) bool) error {
	n.mu.Lock()
	n.answer, n.asked = answer, nil
	n.mu.Unlock()
	_, err := n.Pull(n.t.Context(), n.host+"/"+repository+"/app:1", Auth{Username: "u", Password: "p"})
	return err
}

// opens reports whether the node finds the image under the name of the repository.
func (n *tenancy) opens(repository string) bool {
	_, ok := n.lookupImage(n.host + "/" + repository + "/app:1")
	return ok
}

// written is a manifest as the registry stores it.
type written []byte

func (w written) RawManifest() ([]byte, error) { return w, nil }

func deny(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusForbidden)
	return true
}

// TestSecurityI9AConfigurationOpensNoImage lets an attacker publish the manifest and the configuration of an
// image that is on the node, in a registry that lies about the layers. The attacker's name must not open the
// image.
func TestSecurityI9AConfigurationOpensNoImage(t *testing.T) {
	for what, answer := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"no layer": func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotFound)
			return true
		},
		"a layer that is denied": deny,
		"a layer that is said to be there": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodGet {
				w.WriteHeader(http.StatusNotFound)
			}
			return true
		},
		"a layer that begins as if it were one": func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte{0x1f, 0x8b, 0, 0})
			return true
		},
	} {
		t.Run(what, func(t *testing.T) {
			n := newTenancy(t)
			n.publish("evil", n.image)
			if err := n.pull("evil", answer); err == nil || n.opens("evil") {
				t.Errorf("got %v; the name opens the image: %v", err, n.opens("evil"))
			}
		})
	}
	t.Run("layers of another image", func(t *testing.T) {
		n := newTenancy(t)
		ref, err := name.ParseReference(n.host + "/evil/app:1")
		if err != nil {
			t.Fatal(err)
		}
		other := borrowed{testImage(t, "mine"), n.image}
		n.publish("evil", other.Image)
		manifest, err := other.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(manifest)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Put(ref, written(raw)); err != nil {
			t.Fatal(err)
		}
		if err := n.pull("evil", nil); err == nil || n.opens("evil") {
			t.Errorf("got %v; the name opens the image: %v", err, n.opens("evil"))
		}
	})
}

// TestSecurityI9CredentialsAreSeenToReadTheLayers checks that each pull proves the right of its credentials to
// read the layers, also for a repository that the image came from.
func TestSecurityI9CredentialsAreSeenToReadTheLayers(t *testing.T) {
	n := newTenancy(t)
	var refused *transport.Error
	if err := n.pull("private", deny); !errors.As(err, &refused) || refused.StatusCode != http.StatusForbidden {
		t.Errorf("the registry denies the layers: got %v", err)
	}
	if err := n.pull("private", nil); err != nil || !slices.Equal(n.asked, []string{http.MethodHead}) {
		t.Errorf("the registry gives the layers: got %v and requests %v, want one that fetches nothing", err, n.asked)
	}
	noHead := func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodHead && deny(w, r) }
	if err := n.pull("private", noHead); err != nil {
		t.Errorf("the registry does not know the method HEAD: got %v", err)
	}
}

// TestAnImageOfTwoRepositories pulls the same image from a second repository, with the same manifest and with
// another one.
func TestAnImageOfTwoRepositories(t *testing.T) {
	n := newTenancy(t)
	n.publish("other", n.image)
	n.publish("annotated", mutate.Annotations(n.image, map[string]string{"a": "b"}).(v1.Image))
	for _, repository := range []string{"other", "annotated"} {
		for _, want := range []string{http.MethodGet, http.MethodHead} {
			if err := n.pull(repository, nil); err != nil || !n.opens(repository) || !slices.Equal(n.asked, []string{want}) {
				t.Errorf("%s: got %v and requests %v, want %s", repository, err, n.asked, want)
			}
		}
	}
	entries, err := os.ReadDir(n.Dir())
	if err != nil || len(entries) != 1 || len(n.List()) != 1 {
		t.Errorf("on the disk: %v, %v, want one image", entries, err)
	}
	again, err := Open(n.Dir(), n.options)
	if err != nil {
		t.Fatal(err)
	}
	n.Store = again
	if err := n.pull("other", nil); err != nil || !slices.Equal(n.asked, []string{http.MethodHead}) {
		t.Errorf("another process: got %v and requests %v, want one that fetches nothing", err, n.asked)
	}
}
