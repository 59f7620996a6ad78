// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// smallRelease returns a release of this repository's chart and licence, with small files as programs of two platforms, and its archives.
func smallRelease(t *testing.T) (*release, map[platform]string) {
	t.Helper()
	when, err := time.Parse(time.RFC3339, testDate)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: testVersion, created: when, root: filepath.Join("..", ".."), out: t.TempDir(), platforms: []platform{{"linux", "arm64"}, {"windows", "amd64"}}}
	write(t, r.file("NOTICE", ".txt"), "notice of all modules")
	archives := map[platform]string{}
	for _, p := range r.platforms {
		var programs []built
		for _, name := range []string{program, "runsc"} {
			b := built{source: source{name: name}, platform: p, path: filepath.Join(t.TempDir(), name)}
			write(t, b.path, name+" for "+p.os)
			programs = append(programs, b)
		}
		if archives[p], err = r.archive(p, programs); err != nil {
			t.Fatal(err)
		}
	}
	return r, archives
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// contentsOf returns the files of an archive. The names of executable files begin with an asterisk.
func contentsOf(t *testing.T, name string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	add := func(name string, mode os.FileMode, text []byte) {
		if mode&0o111 != 0 {
			name = "*" + name
		}
		got[name] = string(text)
	}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			in, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(in)
			if err != nil {
				t.Fatal(err)
			}
			add(f.Name, f.Mode(), text)
		}
		return got
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	files, headers := untar(t, z)
	for name, text := range files {
		add(name, headers[name].FileInfo().Mode(), text)
	}
	return got
}

// TestArchiveHasTheInstalledFiles: an archive has the licence, the notice, and the programs. The programs have
// the names under which they call each other.
func TestArchiveHasTheInstalledFiles(t *testing.T) {
	r, archives := smallRelease(t)
	licence, err := os.ReadFile(filepath.Join("..", "..", "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[platform]struct{ file, suffix string }{
		{"linux", "arm64"}:   {"virtual-kubelet_v1.2.3_linux_arm64.tar.gz", ""},
		{"windows", "amd64"}: {"virtual-kubelet_v1.2.3_windows_amd64.zip", ".exe"},
	} {
		if archives[p] != want.file {
			t.Errorf("got archive %s, want %s", archives[p], want.file)
		}
		folder := "virtual-kubelet_v1.2.3_" + p.os + "_" + p.arch + "/"
		files := map[string]string{
			"*" + folder: "", "*" + folder + program + want.suffix: program + " for " + p.os, "*" + folder + "runsc" + want.suffix: "runsc for " + p.os,
			folder + "LICENSE": string(licence), folder + "NOTICE": "notice of all modules",
		}
		if got := contentsOf(t, filepath.Join(r.out, want.file)); !maps.Equal(got, files) {
			t.Errorf("%s: got %q\nwant %q", want.file, got, files)
		}
	}
}

// TestKrewManifestNamesTheArchives: krew finds each archive and verifies its checksum. The archive contains the
// program and the licence.
func TestKrewManifestNamesTheArchives(t *testing.T) {
	r, archives := smallRelease(t)
	if err := r.writeKrew(archives); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.file(program, "_krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var plugin struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &plugin); err != nil {
		t.Fatal(err)
	}
	if plugin.Kind != "Plugin" || plugin.Metadata.Name != program || plugin.Spec.Version != testVersion || len(plugin.Spec.Platforms) != len(archives) {
		t.Errorf("got\n%s", text)
	}
	for _, p := range plugin.Spec.Platforms {
		archive := archives[platform{p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch}]
		digest, err := digestOf(filepath.Join(r.out, archive))
		if err != nil || p.SHA256 != digest || !strings.HasSuffix(p.URI, "/"+testVersion+"/"+archive) {
			t.Errorf("got %+v, want archive %s with checksum %s: %v", p, archive, digest, err)
		}
		inside := contentsOf(t, filepath.Join(r.out, archive))
		var installed []string
		for _, f := range p.Files {
			_, program := inside["*"+f.From]
			if _, has := inside[f.From]; !has && !program || f.To != "." {
				t.Errorf("%s has no %s", archive, f.From)
			}
			if program {
				installed = append(installed, filepath.Base(f.From))
			}
		}
		if !slices.Equal(installed, []string{p.Bin}) {
			t.Errorf("%s: krew installs the programs %q and starts %q", archive, installed, p.Bin)
		}
	}
}

// TestChartOfAReleaseTakesItsImage: Helm loads the chart, as a file and from the OCI layout, and renders the image of this version by default.
func TestChartOfAReleaseTakesItsImage(t *testing.T) {
	r, _ := smallRelease(t)
	if err := r.writeChart(); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(r.out, "virtual-kubelet-1.2.3.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := loader.LoadArchive(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	source, err := loader.LoadDir(filepath.Join("..", "helm", program))
	if err != nil {
		t.Fatal(err)
	}
	if c.Metadata.Version != "1.2.3" || len(c.Templates) != len(source.Templates) || len(c.Files) != len(source.Files) || len(c.Schema) == 0 {
		t.Errorf("got %+v with %d templates and %d files, want version 1.2.3, %d and %d", c.Metadata, len(c.Templates), len(c.Files), len(source.Templates), len(source.Files))
	}
	given, err := util.ToRenderValues(c, map[string]any{
		"nodeName": "n", "provider": "mock", "identity": map[string]any{"mode": "serviceAccount"}, "serving": map[string]any{"mode": "selfSigned"},
	}, common.ReleaseOptions{Name: "n", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(c, given)
	if err != nil {
		t.Fatal(err)
	}
	if text := rendered["virtual-kubelet/templates/deployment.yaml"]; !strings.Contains(text, program+":"+testVersion) {
		t.Errorf("the image is not that of %s:\n%s", testVersion, text)
	}

	f, err := os.Open(r.file(program+"-chart", "_oci.tar"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	files, _ := untar(t, f)
	var index struct{ Manifests []descriptor }
	if err := json.Unmarshal(files["index.json"], &index); err != nil || len(index.Manifests) != 1 || index.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != "1.2.3" {
		t.Fatalf("index.json: %v: %s", err, files["index.json"])
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	follow(t, files, index.Manifests[0], &manifest)
	var about chart.Metadata
	follow(t, files, manifest.Config, &about)
	if manifest.Config.MediaType != "application/vnd.cncf.helm.config.v1+json" || about.Name != program || about.Version != "1.2.3" {
		t.Errorf("got the description %+v of %+v", manifest.Config, about)
	}
	if len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" || !bytes.Equal(follow(t, files, manifest.Layers[0], nil), packed) {
		t.Errorf("the layers %+v are not the chart beside it", manifest.Layers)
	}

	for version, want := range map[string]string{"v1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "8cb177e7-dirty": "0.0.0-8cb177e7-dirty"} {
		if got := (&release{version: version}).chartVersion(); got != want {
			t.Errorf("the chart of %s is %s, want %s", version, got, want)
		}
	}
}

// TestLicencesComeFromTheFilesOfAModule: each licence is recognised by its text, and the notice contains each
// text once.
func TestLicencesComeFromTheFilesOfAModule(t *testing.T) {
	modules, goroot, ours := t.TempDir(), t.TempDir(), t.TempDir()
	const mit = "Permission is hereby granted,\n free of charge"
	write(t, filepath.Join(modules, "example.com", "!big", "one@v1.0.0", "LICENSE.md"), mit)
	write(t, filepath.Join(modules, "example.com", "two@v2.0.0", "COPYING"), mit)
	write(t, filepath.Join(modules, "example.com", "two@v2.0.0", "LICENSE-APACHE"), "Apache License\n  Version 2.0, January 2004")
	write(t, filepath.Join(modules, "example.com", "none@v1.0.0", "README"), mit)
	write(t, filepath.Join(goroot, "LICENSE"), "Redistribution and use in source and binary forms ... to endorse or promote")
	write(t, filepath.Join(ours, "LICENSE"), "Apache License, Version 2.0")
	l := &licences{modules: modules, goroot: goroot, ours: ours, found: map[string]found{}}
	for want, c := range map[string]component{
		"MIT": {path: "example.com/Big/one", version: "v1.0.0", sum: "h1:"}, "Apache-2.0 AND MIT": {path: "example.com/two", version: "v2.0.0", sum: "h1:"},
		noAssertion: {path: "example.com/none", version: "v1.0.0", sum: "h1:"}, "BSD-3-Clause": {path: "stdlib", version: "1.26.0"}, "Apache-2.0": {path: "ours", version: "v1"},
	} {
		if got, err := l.of(c); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", c.path, got, err, want)
		}
	}
	if _, err := l.of(component{path: "example.com/missing", version: "v1.0.0", sum: "h1:"}); err == nil || !strings.Contains(err.Error(), "example.com/missing v1.0.0") {
		t.Errorf("a module that is not in the cache: got %v", err)
	}
	notice := l.notice()
	if strings.Count(notice, mit) != 1 || !strings.Contains(notice, "\nexample.com/Big/one v1.0.0\nexample.com/two v2.0.0\n\n"+mit+"\n") || !strings.Contains(notice, "endorse or promote") {
		t.Errorf("got the notice\n%s", notice)
	}
	for text, want := range map[string]string{
		"Redistribution and use in source and binary forms": "BSD-2-Clause", "Mozilla Public License, version 2.0": "MPL-2.0", "All rights reserved": "",
		"Permission to use, copy, modify, and/or distribute this software": "ISC", "This is free and unencumbered software": "Unlicense",
	} {
		if got := strings.Join(recognise(text), " "); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestSecurityG2LicencesOfAllModulesAreNamed: each module in a binary has a licence, and the notice names it.
func TestSecurityG2LicencesOfAllModulesAreNamed(t *testing.T) {
	dir := nativeRelease(t)
	notice, err := os.ReadFile(filepath.Join(dir, "NOTICE_"+testVersion+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob(filepath.Join(dir, "*.spdx.json"))
	if err != nil || len(documents) != 7 {
		t.Fatalf("got %q, %v, want a description of each of seven binaries", documents, err)
	}
	for _, document := range documents {
		var spdx struct {
			Packages []struct{ Name, VersionInfo, LicenseDeclared string }
		}
		read(t, document, &spdx)
		for _, p := range spdx.Packages[1:] { // the first is the binary
			if p.LicenseDeclared == noAssertion || p.LicenseDeclared == "" {
				t.Errorf("%s in %s has no licence", p.Name, document)
			}
			if !bytes.Contains(notice, []byte("\n"+p.Name+" "+p.VersionInfo+"\n")) {
				t.Errorf("the notice does not name %s of %s", p.Name, document)
			}
		}
	}
}

// TestSecurityG3SignatureIsOfTheChecksums: the public key verifies the signature of SHA256SUMS, and of no other
// content.
func TestSecurityG3SignatureIsOfTheChecksums(t *testing.T) {
	dir := t.TempDir()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, sums := filepath.Join(dir, "key.pem"), filepath.Join(dir, "SHA256SUMS")
	write(t, key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	write(t, sums, "sums\n")
	r := &release{out: dir}
	if err := r.sign(key); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sums + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || !ed25519.Verify(public, []byte("sums\n"), signature) || ed25519.Verify(public, []byte("other\n"), signature) {
		t.Errorf("the signature %q does not hold: %v", text, err)
	}
	if err := r.sign(sums); err == nil || !strings.Contains(err.Error(), sums+": want a private key as PEM") {
		t.Errorf("a file that is no key: got %v", err)
	}
}
