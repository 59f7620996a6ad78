// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// archive writes the archive of a platform: the programs under their names, the licence and the notice. It returns the name of the file.
func (r *release) archive(p platform, programs []built) (string, error) {
	folder := program + "_" + r.version + "_" + p.os + "_" + p.arch
	files := []entry{{folder + "/", 0o755, nil}}
	add := func(name string, mode int64, from string) error {
		data, err := os.ReadFile(from)
		files = append(files, entry{path.Join(folder, name), mode, data})
		return err
	}
	suffix := ""
	if p.os == "windows" {
		suffix = ".exe"
	}
	for _, b := range programs {
		mode := int64(0o755)
		switch b.name {
		case demoProgram, demoShell: // they are in the image
			continue
		case demoImage:
			mode = 0o644
		}
		if err := add(b.name+suffix, mode, b.path); err != nil {
			return "", err
		}
	}
	if err := add("LICENSE", 0o644, filepath.Join(r.root, "LICENSE")); err != nil {
		return "", err
	}
	if err := add("NOTICE", 0o644, r.file("NOTICE", ".txt")); err != nil {
		return "", err
	}
	name, pack := folder+".tar.gz", r.tarGzip
	if p.os == "windows" {
		name, pack = folder+".zip", r.zip
	}
	packed, err := pack(files)
	if err != nil {
		return "", err
	}
	return name, os.WriteFile(filepath.Join(r.out, name), packed, 0o644)
}

// tarGzip packs files. All times in the archive are the time of the sources.
func (r *release) tarGzip(files []entry) ([]byte, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := (&layout{created: r.created}).tar(z, files); err != nil {
		return nil, err
	}
	err := z.Close()
	return packed.Bytes(), err
}

// zip packs files. All times in the archive are the time of the sources.
func (r *release) zip(files []entry) ([]byte, error) {
	var packed bytes.Buffer
	z := zip.NewWriter(&packed)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.created}
		h.SetMode(fs.FileMode(f.mode))
		if strings.HasSuffix(f.name, "/") {
			h.Method = zip.Store
			h.SetMode(fs.FileMode(f.mode) | fs.ModeDir)
		}
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return packed.Bytes(), err
}

// semantic matches a version of a release.
var semantic = regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?)$`)

// chartVersion returns the version of the chart. Helm wants a semantic version.
func (r *release) chartVersion() string {
	if m := semantic.FindStringSubmatch(r.version); m != nil {
		return m[1]
	}
	return "0.0.0-" + regexp.MustCompile(`[^0-9A-Za-z-]`).ReplaceAllString(r.version, "-")
}

// writeChart packs the chart as a file for `helm install` and as an OCI layout for registries. The default image
// of the chart is the image of this release.
func (r *release) writeChart() error {
	c, err := loader.LoadDir(filepath.Join(r.root, "deploy", "helm", program)) // it follows links
	if err != nil {
		return err
	}
	c.Metadata.Version, c.Metadata.AppVersion = r.chartVersion(), r.version
	about, err := yaml.Marshal(c.Metadata)
	if err != nil {
		return fmt.Errorf("write Chart.yaml: %w", err)
	}
	files := make([]entry, 0, len(c.Raw))
	for _, f := range c.Raw {
		if f.Name == "Chart.yaml" {
			f.Data = about
		}
		files = append(files, entry{path.Join(program, f.Name), 0o644, f.Data})
	}
	slices.SortFunc(files, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	packed, err := r.tarGzip(files)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, program+"-"+r.chartVersion()+".tgz"), packed, 0o644); err != nil {
		return err
	}
	l := &layout{created: r.created}
	config, err := l.json("application/vnd.cncf.helm.config.v1+json", c.Metadata)
	if err != nil {
		return err
	}
	manifest, err := l.json(manifestType, object{
		"schemaVersion": 2, "mediaType": manifestType, "config": config,
		"layers": []descriptor{l.blob("application/vnd.cncf.helm.chart.content.v1.tar+gzip", packed)},
	})
	if err != nil {
		return err
	}
	return l.write(r.file(program+"-chart", "_oci.tar"), manifest, r.chartVersion())
}

// writeKrew writes the manifest by which krew installs the program as `kubectl virtual-kubelet`, from the archives.
func (r *release) writeKrew(archives map[platform]string) error {
	var platforms []object
	for _, p := range r.platforms {
		digest, err := digestOf(filepath.Join(r.out, archives[p]))
		if err != nil {
			return err
		}
		folder, bin := program+"_"+r.version+"_"+p.os+"_"+p.arch, program
		if p.os == "windows" {
			bin += ".exe"
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": p.os, "arch": p.arch}},
			"uri":      homepage + "/releases/download/" + r.version + "/" + archives[p], "sha256": digest, "bin": bin,
			"files": []object{{"from": folder + "/" + bin, "to": "."}, {"from": folder + "/LICENSE", "to": "."}},
		})
	}
	text, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin", "metadata": object{"name": program},
		"spec": object{
			"version": "v" + r.chartVersion(), "homepage": homepage, "shortDescription": "Run, check and diagnose virtual nodes",
			"description": "Runs a virtual node, checks pods against a provider (check), and finds what is wrong with a node (doctor).", "platforms": platforms,
		},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(program, "_krew.yaml"), text, 0o644)
}

// sign signs SHA256SUMS with a private key of Ed25519 (PEM, PKCS #8).
func (r *release) sign(key string) error {
	text, err := os.ReadFile(key)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return fmt.Errorf("%s: want a private key as PEM, of openssl genpkey -algorithm ed25519", key)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	private, is := parsed.(ed25519.PrivateKey)
	if !is {
		return fmt.Errorf("%s: got a %T, want a key of openssl genpkey -algorithm ed25519", key, parsed)
	}
	sums, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	if err != nil {
		return err
	}
	signature, err := private.Sign(nil, sums, crypto.Hash(0))
	if err != nil {
		return fmt.Errorf("sign SHA256SUMS: %w", err)
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS.sig"), []byte(base64.StdEncoding.EncodeToString(signature)+"\n"), 0o644)
}

// write writes an OCI layout whose one image or chart is d, as a tar file.
func (l *layout) write(file string, d descriptor, name string) error {
	d.Annotations = map[string]string{"org.opencontainers.image.ref.name": name}
	index, err := json.Marshal(object{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{d}})
	if err != nil {
		return err
	}
	files := append([]entry{
		{"blobs/", 0o755, nil},
		{"blobs/sha256/", 0o755, nil},
		{"index.json", 0o644, index},
		{"oci-layout", 0o644, []byte(`{"imageLayoutVersion":"1.0.0"}`)},
	}, l.blobs...)
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if err := l.tar(f, files); err != nil {
		_ = f.Close() // the first error is returned
		return err
	}
	return f.Close()
}
