// SPDX-License-Identifier: Apache-2.0

package hostfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
)

func podOf(change func(*corev1.PodSpec)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web-0", UID: "u"}}
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	pod.Spec.DNSPolicy = corev1.DNSClusterFirst
	if change != nil {
		change(&pod.Spec)
	}
	return pod
}

func TestHostnames(t *testing.T) {
	long := strings.Repeat("a", 61) + ".bc"
	for name, tt := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
		err    string
	}{
		"the name of the pod":   {nil, "web-0", ""},
		"its own":               {func(s *corev1.PodSpec) { s.Hostname = "busy" }, "busy", ""},
		"a domain is not in it": {func(s *corev1.PodSpec) { s.Subdomain = "sub" }, "web-0", ""},
		"unless it is wanted":   {func(s *corev1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = "sub", ptr.To(true) }, "web-0.sub.ns.svc.cluster.local", ""},
		"without a domain":      {func(s *corev1.PodSpec) { s.SetHostnameAsFQDN = ptr.To(true) }, "web-0", ""},
		"an override": {func(s *corev1.PodSpec) {
			s.HostnameOverride, s.Subdomain, s.SetHostnameAsFQDN = ptr.To("other.example"), "sub", ptr.To(true)
		}, "other.example", ""},
		"a long override":          {func(s *corev1.PodSpec) { s.HostnameOverride = &long }, long[:63], ""},
		"the network of the node":  {func(s *corev1.PodSpec) { s.HostNetwork, s.Hostname = true, "busy" }, "", ""},
		"what is no name":          {func(s *corev1.PodSpec) { s.Hostname = "a.b" }, "", "is not a valid DNS label"},
		"what is no domain":        {func(s *corev1.PodSpec) { s.Subdomain = "A" }, "", "is not a valid DNS label"},
		"what is no override":      {func(s *corev1.PodSpec) { s.HostnameOverride = ptr.To("a_b") }, "", "is not a valid DNS subdomain"},
		"more than a kernel holds": {func(s *corev1.PodSpec) { s.Subdomain, s.SetHostnameAsFQDN = strings.Repeat("s", 50), ptr.To(true) }, "", "is too long (64 characters is the max"},
	} {
		got, err := New(Config{}).Hostname(podOf(tt.change))
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %q, %v; want %q, %q", name, got, err, tt.want, tt.err)
		}
	}
	pod := podOf(nil)
	pod.Name = strings.Repeat("a", 60) + "---b"
	if got, err := New(Config{}).Hostname(pod); err != nil || got != strings.Repeat("a", 60) {
		t.Errorf("a long name: %q, %v", got, err)
	}
}

const head = "# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n" +
	"fe00::0\tip6-localnet\nfe00::0\tip6-mcastprefix\nfe00::1\tip6-allnodes\nfe00::2\tip6-allrouters\n"

func TestHostsFile(t *testing.T) {
	machine := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(machine, []byte("1.1.1.1\tmachine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	aliases := []corev1.HostAlias{{IP: "9.9.9.9", Hostnames: []string{"a", "b"}}, {IP: "8.8.8.8", Hostnames: []string{"c"}}}
	tail := "\n# Entries added by HostAliases.\n9.9.9.9\ta\tb\n8.8.8.8\tc\n"
	for name, tt := range map[string]struct {
		change func(*corev1.PodSpec)
		ips    []string
		want   string
	}{
		"one address":       {nil, []string{"10.0.0.1"}, head + "10.0.0.1\tweb-0\n"},
		"two, and a domain": {func(s *corev1.PodSpec) { s.Subdomain = "sub" }, []string{"10.0.0.1", "fd00::1"}, head + "10.0.0.1\tweb-0.sub.ns.svc.cluster.local\tweb-0\nfd00::1\tweb-0.sub.ns.svc.cluster.local\tweb-0\n"},
		"aliases":           {func(s *corev1.PodSpec) { s.HostAliases = aliases }, []string{"10.0.0.1"}, head + "10.0.0.1\tweb-0\n" + tail},
		"the network of the node": {func(s *corev1.PodSpec) { s.HostNetwork, s.HostAliases = true, aliases }, nil,
			"# Kubernetes-managed hosts file (host network).\n1.1.1.1\tmachine\n" + tail},
		"no address yet": {nil, nil, ""},
		"its own": {func(s *corev1.PodSpec) {
			s.Containers[0].VolumeMounts = []corev1.VolumeMount{{MountPath: "/etc/hosts"}}
		}, []string{"10.0.0.1"}, ""},
	} {
		dir := t.TempDir()
		pod := podOf(tt.change)
		mount, err := New(Config{Hosts: machine}).Mount(dir, pod, &pod.Spec.Containers[0], tt.ips)
		if err != nil || (mount == nil) != (tt.want == "") {
			t.Errorf("%s: %v, %v", name, mount, err)
			continue
		}
		if mount == nil {
			continue
		}
		got, err := os.ReadFile(mount.HostPath)
		if mount.ContainerPath != "/etc/hosts" || mount.Readonly || err != nil {
			t.Errorf("%s: %v, %v", name, mount, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if info, err := os.Stat(mount.HostPath); err != nil || info.Mode() != 0o644 {
			t.Errorf("%s: mode %v, %v", name, info.Mode(), err)
		}
	}
}

// TestHostsFileIsWrittenInPlace: the hosts file keeps its inode, because running containers have this inode
// mounted.
func TestHostsFileIsWrittenInPlace(t *testing.T) {
	dir, pod, f := t.TempDir(), podOf(nil), New(Config{})
	name := filepath.Join(dir, hostsName)
	var infos []os.FileInfo
	for range 2 {
		if _, err := f.Mount(dir, pod, &pod.Spec.Containers[0], []string{"10.0.0.1"}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
		if err := os.WriteFile(name, []byte(strings.Repeat("x", 4096)), 0o644); err != nil { // as a container may
			t.Fatal(err)
		}
	}
	if !os.SameFile(infos[0], infos[1]) || infos[1].Size() >= 4096 {
		t.Errorf("the file became another, or kept what a container wrote: %d bytes", infos[1].Size())
	}
}

func TestHostsFileFollowsNoLinkOut(t *testing.T) {
	dir, pod := t.TempDir(), podOf(nil)
	outside := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(outside, []byte("keep"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, hostsName)); err != nil {
		t.Skip(err)
	}
	if _, err := New(Config{}).Mount(dir, pod, &pod.Spec.Containers[0], []string{"10.0.0.1"}); err == nil {
		t.Error("a link out of the pod's directory was written through")
	}
	if got, _ := os.ReadFile(outside); string(got) != "keep" {
		t.Errorf("the file outside has %q", got)
	}
}

func TestFilesOfTheMachineHaveALimit(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	f := New(Config{Hosts: large, ResolvConf: large})
	pod := podOf(func(s *corev1.PodSpec) { s.HostNetwork, s.DNSPolicy = true, corev1.DNSDefault })
	if _, err := f.Mount(t.TempDir(), pod, &pod.Spec.Containers[0], nil); err == nil {
		t.Error("a hosts file without bound was copied")
	}
	if _, err := f.DNS(pod); err == nil {
		t.Error("a resolver configuration without bound was read")
	}
}

func TestDNS(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(conf, []byte("# comment\nnameserver 1.1.1.1\nnameserver 2.2.2.2\nsearch old.example\nsearch . corp.example. lab.example\noptions ndots:2 rotate\noptions ndots:3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("d%d.example", i))
	}
	long := strings.Repeat("long-label.", 18) + "example" // 205 characters: 10 of them are too many
	var wide []string
	for i := range 12 {
		wide = append(wide, fmt.Sprintf("%02d.%s", i, long))
	}
	cluster := "search ns.svc.cluster.local svc.cluster.local cluster.local corp.example lab.example"
	machine := "servers 1.1.1.1 2.2.2.2 search corp.example lab.example options ndots:3 rotate"
	none := func(c *corev1.PodDNSConfig) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) { s.DNSPolicy, s.DNSConfig = corev1.DNSNone, c }
	}
	for name, tt := range map[string]struct {
		dns    []string
		change func(*corev1.PodSpec)
		want   string
		event  string
	}{
		"the cluster first":                          {[]string{"10.96.0.10"}, nil, "servers 10.96.0.10 " + cluster + " options ndots:5", ""},
		"on the network of the node that is its own": {[]string{"10.96.0.10"}, func(s *corev1.PodSpec) { s.HostNetwork = true }, machine, ""},
		"unless it says so": {[]string{"10.96.0.10"}, func(s *corev1.PodSpec) { s.HostNetwork, s.DNSPolicy = true, corev1.DNSClusterFirstWithHostNet },
			"servers 10.96.0.10 " + cluster + " options ndots:5", ""},
		"the machine's": {[]string{"10.96.0.10"}, func(s *corev1.PodSpec) { s.DNSPolicy = corev1.DNSDefault }, machine, ""},
		"no cluster DNS": {nil, nil, machine,
			`Warning MissingClusterDNS pod: "web-0_ns(u)". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`},
		"none": {nil, none(&corev1.PodDNSConfig{Nameservers: []string{"3.3.3.3"}, Searches: []string{"x"}, Options: []corev1.PodDNSConfigOption{{Name: "debug"}, {Name: "ndots", Value: ptr.To("1")}}}),
			"servers 3.3.3.3 search x options debug ndots:1", ""},
		"merged": {[]string{"10.96.0.10"}, func(s *corev1.PodSpec) {
			s.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"10.96.0.10", "4.4.4.4"}, Searches: []string{"cluster.local", "x"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptr.To("1")}}}
		}, "servers 10.96.0.10 4.4.4.4 " + cluster + " x options ndots:1", ""},
		"too many servers": {nil, none(&corev1.PodDNSConfig{Nameservers: []string{"1", "2", "3", "4"}}), "servers 1 2 3 search  options ",
			"Warning DNSConfigForming Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1 2 3"},
		"too many domains": {nil, none(&corev1.PodDNSConfig{Nameservers: []string{"1"}, Searches: many}), "servers 1 search " + strings.Join(many[:32], " ") + " options ",
			"Warning DNSConfigForming Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(many[:32], " ")},
		"too long together": {nil, none(&corev1.PodDNSConfig{Nameservers: []string{"1"}, Searches: wide}), "servers 1 search " + strings.Join(wide[:9], " ") + " options ",
			"Warning DNSConfigForming Search Line limits were exceeded, some search paths have been omitted, the applied search line is: " + strings.Join(wide[:9], " ")},
		"one too long": {nil, none(&corev1.PodDNSConfig{Nameservers: []string{"1"}, Searches: []string{strings.Repeat("a", 254), "b"}}), "servers 1 search b options ",
			"Warning DNSConfigForming Search Line limits were exceeded, some search paths have been omitted, the applied search line is: b"},
	} {
		recorder := record.NewFakeRecorder(3)
		got, err := New(Config{ClusterDNS: tt.dns, ResolvConf: conf, Recorder: recorder}).DNS(podOf(tt.change))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := "servers " + strings.Join(got.Servers, " ") + " search " + strings.Join(got.Searches, " ") + " options " + strings.Join(got.Options, " ")
		if text != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, text, tt.want)
		}
		event := ""
		if len(recorder.Events) > 0 {
			event = <-recorder.Events
		}
		if event != tt.event {
			t.Errorf("%s: event\n got %s\nwant %s", name, event, tt.event)
		}
	}
}
