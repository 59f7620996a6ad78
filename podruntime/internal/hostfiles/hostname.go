// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// maxLabel is the longest name in /etc/hosts and of a host. maxHostname is the limit of the kernel: a pod may request a fully qualified name of
	// that length.
	maxLabel    = 63
	maxHostname = 64
)

// Hostname returns the host name of the pod's sandbox. It is "" for a pod on the network of the machine, which
// has the machine's name.
func (f *Files) Hostname(pod *corev1.Pod) (string, error) {
	if pod.Spec.HostNetwork {
		return "", nil
	}
	name, domain, err := f.hostNames(pod)
	if err != nil || domain == "" || pod.Spec.SetHostnameAsFQDN == nil || !*pod.Spec.SetHostnameAsFQDN {
		return name, err
	}
	full := name + "." + domain
	if len(full) > maxHostname {
		return "", fmt.Errorf("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is the max, %d characters requested)",
			full, maxHostname, len(full))
	}
	return full, nil
}

// hostNames returns host name and domain of a pod; A domain of "" means none. An override has no domain.
func (f *Files) hostNames(pod *corev1.Pod) (name, domain string, err error) {
	spec := &pod.Spec
	if o := spec.HostnameOverride; o != nil {
		if problems := validation.IsDNS1123Subdomain(*o); len(problems) > 0 {
			return "", "", fmt.Errorf("pod HostnameOverride %q is not a valid DNS subdomain: %s", *o, strings.Join(problems, ";"))
		}
		return shortenName(*o), "", nil
	}
	name = shortenName(pod.Name)
	if spec.Hostname != "" {
		if problems := validation.IsDNS1123Label(spec.Hostname); len(problems) > 0 {
			return "", "", fmt.Errorf("pod Hostname %q is not a valid DNS label: %s", spec.Hostname, strings.Join(problems, ";"))
		}
		name = spec.Hostname
	}
	if spec.Subdomain == "" {
		return name, "", nil
	}
	if problems := validation.IsDNS1123Label(spec.Subdomain); len(problems) > 0 {
		return "", "", fmt.Errorf("pod Subdomain %q is not a valid DNS label: %s", spec.Subdomain, strings.Join(problems, ";"))
	}
	return name, spec.Subdomain + "." + pod.Namespace + ".svc." + f.cfg.ClusterDomain, nil
}

// shortenName truncates a name to the limit, and removes separators at its end. A valid name begins with a letter or digit, so the result is not
// empty.
func shortenName(name string) string {
	if len(name) <= maxLabel {
		return name
	}
	return strings.TrimRight(name[:maxLabel], "-.")
}
