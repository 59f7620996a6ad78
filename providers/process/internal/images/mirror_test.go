// SPDX-License-Identifier: Apache-2.0

package images

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// serve starts a registry with images of these names and tags.
func serve(t *testing.T, tags ...string) (host string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	for _, tag := range tags {
		ref, err := name.ParseReference(host + "/" + tag)
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(ref, image); err != nil {
			t.Fatal(err)
		}
	}
	return host
}

// Images are requested from the mirror first; images that it lacks come from the registry.
func TestAMirrorIsAskedFirst(t *testing.T) {
	mirror := serve(t, "library/both:1")
	origin := serve(t, "library/both:1", "library/origin:1")
	store, err := Open(t.TempDir(), Options{Mirrors: map[string]string{origin: "http://" + mirror}, Insecure: []string{origin}})
	if err != nil {
		t.Fatal(err)
	}
	auth := Auth{Username: "u", Password: "p"}
	find := func(tag string) (string, error) {
		ref, err := parseName(origin+"/library/"+tag, []string{origin})
		if err != nil {
			t.Fatal(err)
		}
		found, err := store.findDescriptor(t.Context(), ref, auth)
		if err != nil {
			return "", err
		}
		return found.Digest.String(), nil
	}
	digest := func(host, tag string) string {
		ref, err := name.ParseReference(host + "/library/" + tag)
		if err != nil {
			t.Fatal(err)
		}
		d, err := remote.Get(ref)
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest.String()
	}
	if got, err := find("both:1"); err != nil || got != digest(mirror, "both:1") {
		t.Errorf("got %s and %v, want the image of the mirror", got, err)
	}
	if got, err := find("origin:1"); err != nil || got != digest(origin, "origin:1") {
		t.Errorf("got %s and %v, want the image of the registry", got, err)
	}
	if _, err := find("none:1"); err == nil || !strings.Contains(err.Error(), "the mirror:") {
		t.Errorf("got %v, want an error that names both", err)
	}
}

// A mirror that asks for credentials gets none: they are for the registry.
func TestAMirrorGetsNoCredentials(t *testing.T) {
	var seen atomic.Value
	curious := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.Header.Get("Authorization"); who != "" {
			seen.Store(who)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="mirror"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(curious.Close)
	origin := serve(t, "library/both:1")
	store, err := Open(t.TempDir(), Options{Mirrors: map[string]string{origin: curious.URL}, Insecure: []string{origin}})
	if err != nil {
		t.Fatal(err)
	}
	ref, err := parseName(origin+"/library/both:1", []string{origin})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.findDescriptor(t.Context(), ref, Auth{Username: "u", Password: "p"}); err != nil {
		t.Errorf("got %v, want the image of the registry", err)
	}
	if who := seen.Load(); who != nil {
		t.Errorf("the mirror was told %v", who)
	}
}

func TestMirrorsAreURLs(t *testing.T) {
	for mirror, want := range map[string]bool{
		"http://10.0.0.1:5000": true, "https://mirror.example/": true, "mirror.example": false, "ftp://m": false, "https://m/path": false,
	} {
		if err := CheckMirror(mirror); (err == nil) != want {
			t.Errorf("%s: got %v", mirror, err)
		}
	}
}
