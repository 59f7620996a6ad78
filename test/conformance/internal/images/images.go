// SPDX-License-Identifier: Apache-2.0

// Package images makes the images of Kubernetes' suite, under the names that the suite expects, from programs of
// this machine: agnhost and similar programs are built from Kubernetes' sources, the rest comes from Debian.
//
// Note: these are substitutes. The same busybox is behind every version of busybox, and nginx is a busybox
// that serves files. The results of a test about the node do not depend on that; docs/reports/conformance.md
// names the one exception.
package images

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// Registry is the registry of these images.
const Registry = "registry.k8s.io"

// Programs has the paths of the programs in the images.
type Programs struct {
	// Dir has agnhost, pause, sh and nnp, statically linked, and etcd and sample-apiserver.
	Dir string
	// Sources is the directory of the module k8s.io/kubernetes.
	Sources string
	// Busybox is a statically linked busybox.
	Busybox string
}

func (p Programs) programPath(name string) string { return filepath.Join(p.Dir, name) }

func (p Programs) sourcePath(name string) string {
	return filepath.Join(p.Sources, "test", "images", filepath.FromSlash(name))
}

// All makes the images, by name and tag below [Registry].
func All(p Programs) (map[string]v1.Image, error) {
	pause, err := pauseImage(p)
	if err != nil {
		return nil, err
	}
	busybox, err := p.busyboxLayers()
	if err != nil {
		return nil, err
	}
	agnhost, err := p.agnhostLayers(pause)
	if err != nil {
		return nil, err
	}
	html := func(name string) func(*tree) {
		return func(t *tree) {
			t.addProgram("/"+name+".jpg", p.sourcePath(name+"/html/"+name+".jpg"))
			t.addProgram("/data.json", p.sourcePath(name+"/html/data.json"))
			// The test of image volumes looks for the name of the distribution below upstream's image.
			t.addText("/etc/os-release", "NAME=\"Alpine Linux\"\nVARIANT=\"a stand-in for it\"\n")
		}
	}
	shell := v1.Config{Env: environment, Cmd: []string{"sh"}}
	nonroot := v1.Config{Env: environment, Cmd: []string{"sh"}, User: "1234"}
	test := v1.Config{Env: environment, Entrypoint: []string{"/agnhost"}, Cmd: []string{"pause"}}
	pets := v1.Config{Env: environment, Entrypoint: []string{"/agnhost"}, Cmd: []string{"test-webserver"}}
	web := v1.Config{Env: environment, Cmd: []string{"nginx", "-g", "daemon off;"}}
	escalate := v1.Config{Env: environment, Cmd: []string{"nnp"}}
	sample := v1.Config{Env: environment, Entrypoint: []string{"/sample-apiserver"}}
	// This image is not for tests: clusters run it.
	etcd, err := buildImage(busybox, p.programAt("/usr/local/bin/etcd"), v1.Config{Env: environment})
	if err != nil {
		return nil, fmt.Errorf("make the image etcd: %w", err)
	}

	all := map[string]v1.Image{"pause:3.10.2": pause, "etcd:3.7.0-0": etcd}
	for _, i := range []struct {
		names  []string
		base   []v1.Layer
		add    func(*tree)
		config v1.Config
	}{
		{[]string{"busybox:1.37.0-2", "busybox:1.36.1-1"}, busybox, nil, shell},
		{[]string{"nonroot:1.5"}, busybox, nil, nonroot},
		{[]string{"nginx:1.28.0-2", "nginx:1.27.0-2"}, busybox, addNginx, web},
		{[]string{"agnhost:2.66.1", "agnhost:2.55"}, agnhost, nil, test},
		{[]string{"glibc-dns-testing:2.1.1", "ipc-utils:1.4"}, agnhost, nil, shell},
		{[]string{"kitten:1.8"}, agnhost, html("kitten"), pets},
		{[]string{"nautilus:1.8"}, agnhost, html("nautilus"), pets},
		{[]string{"nonewprivs:1.4"}, busybox, p.addSetuid, escalate},
		{[]string{"sample-apiserver:1.29.2"}, busybox, p.programAt("/sample-apiserver"), sample},
	} {
		image, err := buildImage(i.base, i.add, i.config)
		if err != nil {
			return nil, fmt.Errorf("make the image %s: %w", i.names[0], err)
		}
		for _, name := range i.names {
			all["e2e-test-images/"+name] = image
		}
	}
	return all, nil
}

var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

func buildImage(base []v1.Layer, add func(*tree), config v1.Config) (v1.Image, error) {
	layers := append([]v1.Layer(nil), base...)
	if add != nil {
		t := newTree()
		add(t)
		layer, err := t.makeLayer()
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", architecture, config
	return mutate.ConfigFile(image, file)
}

func pauseImage(p Programs) (v1.Image, error) {
	t := newTree()
	t.addProgram("/pause", p.programPath("pause"))
	layer, err := t.makeLayer()
	if err != nil {
		return nil, err
	}
	return buildImage([]v1.Layer{layer}, nil, v1.Config{Env: environment, Entrypoint: []string{"/pause"}, User: "65535:65535"})
}

// programAt adds the program of that name under the path. The program may load libraries.
func (p Programs) programAt(name string) func(*tree) {
	return func(t *tree) {
		t.addDynamic(p.programPath(path.Base(name)))
		t.addLink(name, path.Join("/usr/bin", path.Base(name)))
	}
}

func addNginx(t *tree) {
	t.addScript("/usr/sbin/nginx", "#!/bin/sh\nexec /bin/busybox httpd -f -p 80 -h /usr/share/nginx/html\n")
	t.addText("/usr/share/nginx/html/index.html", "<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1></body></html>\n")
}

func (p Programs) addSetuid(t *tree) {
	t.addProgram("/usr/local/bin/nnp", p.programPath("nnp"))
	if e, ok := t.entries["/usr/local/bin/nnp"]; ok {
		e.mode = 0o6755
		t.entries["/usr/local/bin/nnp"] = e
	}
}

// addBase adds the files that every image has.
func addBase(t *tree, users, groups string) {
	for _, name := range []string{"/dev", "/proc", "/sys", "/etc", "/root", "/home", "/usr/share", "/var/log", "/run", "/mnt"} {
		t.addFolder(name, 0o755)
	}
	t.addFolder("/tmp", 0o1777)
	t.addFolder("/var/tmp", 0o1777)
	t.addLink("/var/run", "/run")
	t.addText("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"+users)
	t.addText("/etc/group", "root:x:0:\nnogroup:x:65534:\n"+groups)
	t.addText("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
}

func (p Programs) busyboxLayers() ([]v1.Layer, error) {
	t := newTree()
	addBase(t, "", "")
	t.addProgram("/bin/sh", p.programPath("sh"))
	t.linkApplets(p.Busybox)
	layer, err := t.makeLayer()
	return []v1.Layer{layer}, err
}

// agnhostLayers installs the contents of Kubernetes' own Dockerfile, from Debian instead of Alpine.
func (p Programs) agnhostLayers(pause v1.Image) ([]v1.Layer, error) {
	t := newTree()
	addBase(t, "user-defined-in-image:x:1000:1000::/home/user-defined-in-image:/bin/sh\n",
		"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n")
	t.addDynamic("bash", "curl", "dig", "host", "nslookup", "getent", "nc.openbsd", "socat", "iperf", "ip", "ss", "ipcs")
	t.addLink("/bin/bash", "/usr/bin/bash")
	t.addLink("/bin/sh", "/usr/bin/bash")
	t.addLink("/bin/nc", "/usr/bin/nc.openbsd")
	t.addLink("/usr/local/bin/iperf", "/usr/bin/iperf")
	t.linkApplets(p.Busybox)
	t.addFolder("/uploads", 0o755)
	for _, name := range []string{"localhost.crt", "localhost.key"} {
		data, err := os.ReadFile(p.sourcePath("agnhost/porter/" + name))
		if err != nil {
			return nil, fmt.Errorf("read a file of agnhost: %w", err)
		}
		t.addText("/"+name, string(data))
	}
	tools, err := t.makeLayer()
	if err != nil {
		return nil, err
	}
	t = newTree()
	t.addProgram("/agnhost", p.programPath("agnhost"))
	t.addLink("/agnhost-2", "agnhost")
	if err := registryFiles(t, "/var/registry/pause", "testing", pause); err != nil {
		return nil, err
	}
	program, err := t.makeLayer()
	return []v1.Layer{tools, program}, err
}
