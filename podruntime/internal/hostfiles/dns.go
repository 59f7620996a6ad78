// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits of resolvers.
const (
	maxServers     = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// DNS returns the DNS settings of the pod's sandbox. Exceeded limits and a missing cluster DNS are recorded as events of the pod.
func (f *Files) DNS(pod *corev1.Pod) (*runtimeapi.DNSConfig, error) {
	config, err := f.policyConfig(pod)
	if err != nil {
		return nil, fmt.Errorf("DNS settings of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if own := pod.Spec.DNSConfig; own != nil {
		config.Servers = append(config.Servers, own.Nameservers...)
		config.Searches = append(config.Searches, own.Searches...)
		config.Options = mergeOptions(config.Options, own.Options)
	}
	config.Servers = f.fitServers(pod, dropDuplicates(config.Servers))
	config.Searches = f.fitSearches(pod, dropDuplicates(config.Searches))
	return config, nil
}

// policyConfig returns the settings by policy.
func (f *Files) policyConfig(pod *corev1.Pod) (*runtimeapi.DNSConfig, error) {
	cluster := false
	switch policy := pod.Spec.DNSPolicy; policy {
	case corev1.DNSNone:
		return &runtimeapi.DNSConfig{}, nil
	case corev1.DNSClusterFirst, corev1.DNSClusterFirstWithHostNet:
		cluster = !pod.Spec.HostNetwork || policy == corev1.DNSClusterFirstWithHostNet
	case corev1.DNSDefault:
	default: // the API server refuses all other policies; a kubelet handles them like its default
		cluster = true
	}
	machine, err := readResolvConf(f.cfg.ResolvConf)
	if err == nil && f.cfg.Nameserver != "" && !pod.Spec.HostNetwork {
		machine.Servers = []string{f.cfg.Nameserver}
	}
	if err != nil || !cluster {
		return machine, err
	}
	if len(f.cfg.ClusterDNS) == 0 {
		f.warnPod(pod, "MissingClusterDNS", "pod: %q. kubelet does not have ClusterDNS IP configured and cannot create Pod using %q policy. Falling back to %q policy.",
			fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), corev1.DNSClusterFirst, corev1.DNSDefault)
		return machine, nil
	}
	domain := f.cfg.ClusterDomain
	return &runtimeapi.DNSConfig{
		Servers:  slices.Clone(f.cfg.ClusterDNS),
		Searches: append([]string{pod.Namespace + ".svc." + domain, "svc." + domain, domain}, machine.Searches...),
		Options:  []string{"ndots:5"},
	}, nil
}

func (f *Files) fitServers(pod *corev1.Pod, servers []string) []string {
	if len(servers) <= maxServers {
		return servers
	}
	servers = servers[:maxServers]
	f.warnPod(pod, "DNSConfigForming", "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: %s",
		strings.Join(servers, " "))
	return servers
}

// fitSearches truncates the list to the limits of resolvers. Some resolvers fail at a domain that is too long.
func (f *Files) fitSearches(pod *corev1.Pod, searches []string) []string {
	before := len(searches)
	searches = searches[:min(before, maxSearches)]
	searches = slices.DeleteFunc(searches, func(s string) bool { return len(s) > validation.DNS1123SubdomainMaxLength })
	for len(strings.Join(searches, " ")) > maxSearchChars {
		searches = searches[:len(searches)-1]
	}
	if len(searches) < before {
		f.warnPod(pod, "DNSConfigForming", "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: %s",
			strings.Join(searches, " "))
	}
	return searches
}

// mergeOptions puts the pod's options over others. A pod's option replaces an option with the same name.
func mergeOptions(options []string, own []corev1.PodDNSConfigOption) []string {
	for _, o := range own {
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		options = setOption(options, text)
	}
	return options
}

func setOption(options []string, option string) []string {
	name, _, _ := strings.Cut(option, ":")
	for i := range options {
		if has, _, _ := strings.Cut(options[i], ":"); has == name {
			options[i] = option
			return options
		}
	}
	return append(options, option)
}

// readResolvConf reads a resolver configuration. Nameservers accumulate. The last search line wins, and the last option with the same name.
func readResolvConf(name string) (*runtimeapi.DNSConfig, error) {
	config := &runtimeapi.DNSConfig{}
	content, err := readFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return config, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "nameserver" && len(words) == 1:
			return nil, fmt.Errorf("%s: a nameserver without an address", name)
		case words[0] == "nameserver":
			config.Servers = append(config.Servers, words[1])
		case words[0] == "search":
			config.Searches = nil
			for _, s := range words[1:] {
				if s != "." { // with or without its last dot, a domain counts once
					config.Searches = append(config.Searches, cmp.Or(strings.TrimSuffix(s, "."), s))
				}
			}
		case words[0] == "options":
			for _, o := range words[1:] {
				config.Options = setOption(config.Options, o)
			}
		}
	}
	return config, nil
}

// dropDuplicates drops duplicates, and keeps the order.
func dropDuplicates(list []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s string) bool {
		had := seen[s]
		seen[s] = true
		return had
	})
}
