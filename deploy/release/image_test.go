// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// untar returns the files of a tar file by their names.
func untar(t *testing.T, from io.Reader) (files map[string][]byte, headers map[string]*tar.Header) {
	t.Helper()
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, headers
		}
		var data []byte
		if err == nil {
			data, err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], headers[h.Name] = data, h
	}
}

// follow decodes the blob of a descriptor and checks its digest.
func follow(t *testing.T, files map[string][]byte, d descriptor, into any) []byte {
	t.Helper()
	hash, ok := strings.CutPrefix(d.Digest, "sha256:")
	data := files["blobs/sha256/"+hash]
	if !ok || hexDigest(data) != hash || len(data) != d.Size {
		t.Fatalf("blob %+v: got %d bytes of digest %s", d, len(data), hexDigest(data))
	}
	if into != nil {
		if err := json.Unmarshal(data, into); err != nil {
			t.Fatalf("blob %+v: %v", d, err)
		}
	}
	return data
}

// TestSecurityG4ImageHasNothingButTheProgram opens the image as a container engine would.
func TestSecurityG4ImageHasNothingButTheProgram(t *testing.T) {
	dir := nativeRelease(t)
	f, err := os.Open(filepath.Join(dir, program+"_"+testVersion+"_oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	files, _ := untar(t, f)
	if got := string(files["oci-layout"]); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout: got %s", got)
	}
	var index, all struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 {
		t.Fatalf("index.json: %v: %s", err, files["index.json"])
	}
	follow(t, files, index.Manifests[0], &all)
	if len(all.Manifests) != 1 || all.Manifests[0].Platform == nil || *all.Manifests[0].Platform != (imagePlatform{runtime.GOARCH, "linux"}) {
		t.Fatalf("platforms: got %+v", all.Manifests)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	follow(t, files, all.Manifests[0], &manifest)
	var image struct {
		Config struct {
			User       string
			Env        []string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	follow(t, files, manifest.Config, &image)
	if !slices.Equal(image.Config.Env, []string{searchPath}) {
		t.Errorf("got the environment %q, want %q", image.Config.Env, searchPath)
	}
	if image.Config.User != "65532:65532" || !slices.Equal(image.Config.Entrypoint, []string{"/virtual-kubelet"}) || len(manifest.Layers) != 1 {
		t.Errorf("got user %q, entry point %q, %d layers", image.Config.User, image.Config.Entrypoint, len(manifest.Layers))
	}

	z, err := gzip.NewReader(bytes.NewReader(follow(t, files, manifest.Layers[0], nil)))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil || len(image.RootFS.DiffIDs) != 1 || image.RootFS.DiffIDs[0] != "sha256:"+hexDigest(plain) {
		t.Fatalf("the layer is not the one that the image names: %v", err)
	}
	in, headers := untar(t, bytes.NewReader(plain))
	want := []string{"etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt", "virtual-kubelet"}
	for name, h := range headers {
		if !slices.Contains(want, name) {
			t.Errorf("the image has %s, which the program does not need", name)
		}
		if h.Mode&0o022 != 0 || h.Uid != 0 || h.Mode&0o7000 != 0 {
			t.Errorf("%s: got mode %o of user %d, want a file that only root may write", name, h.Mode, h.Uid)
		}
	}
	if len(headers) != len(want) {
		t.Errorf("got %d files, want %q", len(headers), want)
	}
	binary, err := os.ReadFile(filepath.Join(dir, binaryName()))
	if err != nil || !bytes.Equal(in["virtual-kubelet"], binary) || headers["virtual-kubelet"].Mode != 0o755 {
		t.Errorf("the program in the image is not the one beside it: %v", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(in["etc/ssl/certs/ca-certificates.crt"]) || bytes.Count(in["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN")) < 50 {
		t.Error("the authorities in the image are none")
	}
}

// TestPublishedD14CommandOfTheChartIsInTheImage: manifests of other programs have command: ["virtual-kubelet"],
// and a container runtime searches the image's path for it. Source: github.com/virtual-kubelet/azure-aci,
// charts/virtual-kubelet/templates/deployment.yaml and deploy/deployment.yaml.
func TestPublishedD14CommandOfTheChartIsInTheImage(t *testing.T) {
	if dirs := filepath.SplitList(strings.TrimPrefix(searchPath, "PATH=")); !slices.Contains(dirs, "/") {
		t.Errorf("/%s is not found in %s", program, searchPath)
	}
}

// TestSecurityG4DockerfileMakesTheSameImage: the Dockerfile for container engines describes the same image.
func TestSecurityG4DockerfileMakesTheSameImage(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "image", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			steps = append(steps, line)
		}
	}
	want := []string{
		"FROM scratch", "ARG BINARY", "COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt", "COPY --chmod=0755 ${BINARY} /virtual-kubelet",
		"USER " + user, "ENV " + searchPath, "WORKDIR /", `ENTRYPOINT ["/virtual-kubelet"]`,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("got %q\nwant %q", steps, want)
	}
}
