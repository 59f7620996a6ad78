// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	hostsPath = "/etc/hosts" // in containers
	hostsName = "etc-hosts"  // in the directory of the pod

	managed     = "# Kubernetes-managed hosts file.\n"
	managedHost = "# Kubernetes-managed hosts file (host network).\n"

	// maxFile is the maximum size of a file that is read or written. API objects, which have the hostAliases, are not larger either.
	maxFile = 2 << 20
)

// loopback is the beginning of /etc/hosts in every pod with its own network.
const loopback = `127.0.0.1	localhost
::1	localhost ip6-localhost ip6-loopback
fe00::0	ip6-localnet
fe00::0	ip6-mcastprefix
fe00::1	ip6-allnodes
fe00::2	ip6-allrouters
`

// Mount writes /etc/hosts for the pod into dir, the pod's own directory, and returns its mount. It returns nil if the container has its own mount at
// /etc/hosts, or the pod has no address yet.
func (f *Files) Mount(dir string, pod *corev1.Pod, container *corev1.Container, ips []string) (*runtimeapi.Mount, error) {
	for i := range container.VolumeMounts {
		if path.Clean(container.VolumeMounts[i].MountPath) == hostsPath {
			return nil, nil
		}
	}
	if len(ips) == 0 && !pod.Spec.HostNetwork {
		return nil, nil
	}
	content, err := f.hostsContent(pod, ips)
	if err != nil {
		return nil, fmt.Errorf("%s of pod %s/%s: %w", hostsPath, pod.Namespace, pod.Name, err)
	}
	if err := writeHosts(dir, content); err != nil {
		return nil, fmt.Errorf("%s of pod %s/%s: %w", hostsPath, pod.Namespace, pod.Name, err)
	}
	return &runtimeapi.Mount{ContainerPath: hostsPath, HostPath: filepath.Join(dir, hostsName), SelinuxRelabel: true}, nil
}

// hostsContent returns the content of the file.
func (f *Files) hostsContent(pod *corev1.Pod, ips []string) ([]byte, error) {
	var out bytes.Buffer
	if pod.Spec.HostNetwork {
		machine, err := readFile(f.cfg.Hosts)
		if err != nil {
			return nil, err
		}
		out.WriteString(managedHost)
		out.Write(machine)
	} else {
		name, domain, err := f.hostNames(pod)
		if err != nil {
			return nil, err
		}
		out.WriteString(managed)
		out.WriteString(loopback)
		for _, ip := range ips {
			if domain != "" {
				fmt.Fprintf(&out, "%s\t%s.%s\t%s\n", ip, name, domain, name)
			} else {
				fmt.Fprintf(&out, "%s\t%s\n", ip, name)
			}
		}
	}
	if len(pod.Spec.HostAliases) > 0 {
		out.WriteString("\n# Entries added by HostAliases.\n")
	}
	for _, alias := range pod.Spec.HostAliases {
		fmt.Fprintf(&out, "%s\t%s\n", alias.IP, strings.Join(alias.Hostnames, "\t"))
	}
	if out.Len() > 2*maxFile {
		return nil, fmt.Errorf("it would have %d bytes, more than %d", out.Len(), 2*maxFile)
	}
	return out.Bytes(), nil
}

// writeHosts writes the file in place, because running containers have its inode mounted. It opens the directory through os.Root, so that a link in
// place of the file cannot lead out of the directory.
func writeHosts(dir string, content []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.WriteFile(hostsName, content, 0o644); err != nil {
		return err
	}
	return root.Chmod(hostsName, 0o644) // independent of the umask
}

// readFile reads a file of the machine.
func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s has more than %d bytes", name, maxFile)
	}
	return content, nil
}
