// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// source describes how a binary is built.
type source struct {
	name string
	// folder is the folder of the module, below the sources. what is the package to build.
	folder, what string
	tags         string
	// variables are the linker settings of variables.
	variables string
	// flags are more of go build.
	flags []string
}

// quickKubernetes returns the flags of hack/goenv.sh for the control plane. They save a third of the compile
// time, and use the build cache of make up and of the tests.
func quickKubernetes() (flags []string) {
	for _, module := range []string{"k8s.io/kubernetes", "k8s.io/kubectl", "k8s.io/kube-aggregator", "k8s.io/apiextensions-apiserver", "k8s.io/kube-scheduler", "sigs.k8s.io/kustomize", "go.etcd.io/etcd"} {
		flags = append(flags, "-gcflags="+module+"/...=-l")
	}
	return flags
}

// sources returns the binaries of a platform. Those for Linux only are gVisor, with which provider process makes
// containers, the supervisor of each container, and the programs of the demo: the control plane, the emulators of
// clouds, and the two programs of the image of its first pod.
func (r *release) sources(ctx context.Context, p platform) ([]source, error) {
	gVisor, err := r.moduleVersion(ctx, "providers/process/gvisor", "gvisor.dev/gvisor")
	if err != nil {
		return nil, err
	}
	containers := " -X github.com/virtual-kubelet/virtual-kubelet/providers/process/internal/shim.build=" + r.version
	all := []source{{
		name: program, folder: "cmd/" + program, what: ".", tags: "grpcnotrace",
		variables: fmt.Sprintf(" -X main.buildVersion=%s -X main.buildCommit=%s -X main.buildTime=%s -X main.gVisorVersion=%s", r.version, r.commit, r.created.Format(time.RFC3339), gVisor) + containers,
	}}
	if p.os == "linux" {
		all = append(all, source{name: program + "-container", folder: "providers", what: "./process/supervisor", variables: containers},
			source{name: "runsc", folder: "providers/process/gvisor", what: "./runsc"})
		variables, err := r.kubernetesVersion(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, source{name: "devcluster", folder: "devcluster", what: ".", variables: variables, flags: quickKubernetes()},
			source{name: "emulate", folder: "providers", what: "./internal/emulate", variables: containers},
			source{name: demoProgram, folder: "providers", what: "./process/demo"}, source{name: demoShell, folder: "providers/process/demo/shell", what: "."})
	}
	return all, nil
}

// moduleVersion returns the version of a module that the module in a folder of the sources requires.
func (r *release) moduleVersion(ctx context.Context, folder, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = filepath.Join(r.root, folder)
	cmd.Env = append(environment(os.Environ()), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("the version of %s in %s: %w", module, folder, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// kubernetesVersion returns the linker settings for the version of the API server and kubectl in devcluster, as
// in hack/build-devcluster.sh.
func (r *release) kubernetesVersion(ctx context.Context) (string, error) {
	version, err := r.moduleVersion(ctx, "devcluster", "k8s.io/kubernetes")
	if err != nil {
		return "", err
	}
	numbers := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(numbers) < 3 {
		return "", fmt.Errorf("the version of Kubernetes in devcluster: %q", version)
	}
	var variables strings.Builder
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range []string{"gitVersion=" + version, "gitMajor=" + numbers[0], "gitMinor=" + numbers[1], "gitCommit=unknown", "gitTreeState=clean"} {
			fmt.Fprintf(&variables, " -X %s.%s", pkg, v)
		}
	}
	return variables.String(), nil
}

// The programs of the image of the first pod of the demo.
const (
	demoProgram = "demo"
	demoShell   = "demo-shell"
	demoImage   = "demo-image.tar"
)

// node reports whether a node needs the program. Packages have these programs alone.
func (s source) node() bool {
	return s.name == program || s.name == program+"-container" || s.name == "runsc"
}

// packDemoImage makes the image of the first pod, as the Makefile does.
func (r *release) packDemoImage(ctx context.Context, p platform, programs []built) (built, error) {
	image := built{source: source{name: demoImage}, platform: p}
	temporary, err := os.MkdirTemp("", program)
	if err != nil {
		return image, err
	}
	defer func() { _ = os.RemoveAll(temporary) }() // an error leaves files in a folder for temporary files
	for _, b := range programs {
		if b.name == demoProgram || b.name == demoShell { // the name of the file is a name in the image
			absolute, err := filepath.Abs(b.path)
			if err == nil {
				err = os.Symlink(absolute, filepath.Join(temporary, b.name))
			}
			if err != nil {
				return image, err
			}
		}
	}
	if image.path, err = filepath.Abs(r.file("demo-image", "_"+p.os+"_"+p.arch+".tar")); err != nil {
		return image, err
	}
	args := []string{"run", "-trimpath", "./process/demo/pack", "-name", demoProgram, "-arch", p.arch, "-sh", filepath.Join(temporary, demoShell), "-o", image.path, filepath.Join(temporary, demoProgram)}
	cmd := exec.CommandContext(ctx, "go", append(args, demoTools...)...)
	cmd.Dir = filepath.Join(r.root, "providers")
	cmd.Env = append(environment(os.Environ()), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return image, fmt.Errorf("pack the image of the demo: %w: %s", err, bytes.TrimSpace(said))
	}
	return image, nil
}

// demoTools are the names of the program in the image.
var demoTools = []string{"base64", "cat", "env", "exit", "hostname", "id", "ls", "sleep", "tar"}

// built is one binary.
type built struct {
	source
	platform
	path   string
	digest string // SHA-256, hexadecimal
}

// build compiles a binary. It contains nothing of this machine: no paths, no state of the repository, no time
// except the time of the sources, no C.
func (r *release) build(ctx context.Context, s source, p platform) (built, error) {
	suffix := "_" + p.os + "_" + p.arch
	if p.os == "windows" {
		suffix += ".exe"
	}
	path, err := filepath.Abs(r.file(s.name, suffix))
	if err != nil {
		return built{}, err
	}
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-tags=" + s.tags, "-ldflags=-s -w -buildid=" + s.variables, "-o", path}, s.flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, s.what)...)
	cmd.Dir = filepath.Join(r.root, s.folder)
	cmd.Env = append(environment(os.Environ()), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOWORK=off")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return built{}, fmt.Errorf("build %s for %s/%s: %w: %s", s.name, p.os, p.arch, err, strings.TrimSpace(said.String()))
	}
	digest, err := digestOf(path)
	return built{source: s, platform: p, path: path, digest: digest}, err
}

// environment leaves out variables that change how Go compiles.
func environment(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "GOFLAGS" || name == "GOEXPERIMENT" || name == "GOFIPS140" || strings.HasPrefix(name, "CGO_")
	})
}

// digestOf returns the SHA-256 of a file.
func digestOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeSums writes SHA256SUMS, for `sha256sum --check`.
func (r *release) writeSums() error {
	entries, err := os.ReadDir(r.out) // in the order of names
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		digest, err := digestOf(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", digest, e.Name())
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}
