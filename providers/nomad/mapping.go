// SPDX-License-Identifier: Apache-2.0

package nomad

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/storage"
)

// Keys of the metadata of a job.
const (
	metaCluster   = "vk_cluster"
	metaNode      = "vk_node"
	metaNamespace = "vk_namespace"
	metaName      = "vk_name"
	metaUID       = "vk_uid"
	metaVariables = "vk_variables" // paths, with blanks between them
)

// mapping converts pods to jobs.
type mapping struct {
	config Config
	owner  owner
}

// check refuses the pods that job would refuse, as far as the pod alone shows the reason. The speed of CPUs has
// no effect on the result.
func (m mapping) check(pod *corev1.Pod) error {
	in, err := service.Unread(identity.Owner{}, pod)
	if err == nil {
		_, err = m.job(in, 1000)
	}
	return err
}

// job returns the job of a pod and its Variables, for CPUs of a speed in MHz. Errors are of the kind invalid-input.
func (m mapping) job(in *service.Inputs, mhz float64) (request, error) {
	pod := in.Pod
	driver, err := m.driver(pod)
	if err != nil {
		return request{}, err
	}
	datacenters, err := m.datacenters(pod)
	if err != nil {
		return request{}, err
	}
	kind := nomadapi.JobTypeBatch
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == "" {
		kind = nomadapi.JobTypeService
	}
	id := m.owner.jobID(string(pod.UID))
	job := nomadapi.Job{
		ID: &id, Name: &id, Type: &kind, Namespace: &m.config.Namespace, Priority: &m.config.Priority, NodePool: &m.config.NodePool,
		Datacenters: datacenters,
		Meta: map[string]string{
			metaCluster: m.owner.cluster, metaNode: m.owner.node, metaNamespace: pod.Namespace, metaName: pod.Name,
			metaUID: string(pod.UID),
		},
	}
	if kind == nomadapi.JobTypeService {
		job.Update = &nomadapi.UpdateStrategy{MaxParallel: ptr.To(0)} // no deployment: there is one version of a pod
	}
	if m.config.Region != "" {
		job.Region = &m.config.Region
	}
	g := &nomadapi.TaskGroup{
		Name: ptr.To(group), Count: ptr.To(1),
		ReschedulePolicy: &nomadapi.ReschedulePolicy{Attempts: ptr.To(0), Unlimited: ptr.To(false), Interval: ptr.To(time.Duration(0)), Delay: ptr.To(time.Duration(0)), MaxDelay: ptr.To(time.Duration(0)), DelayFunction: ptr.To("")},
		Disconnect:       &nomadapi.DisconnectStrategy{LostAfter: &m.config.LostAfter.Duration, Replace: ptr.To(false)},
	}
	if megabytes := (storage.Requested(pod) + 1<<20 - 1) >> 20; megabytes > diskGiven {
		g.EphemeralDisk = &nomadapi.EphemeralDisk{SizeMB: ptr.To(int(megabytes))}
	}
	g.Networks, err = m.network(pod)
	if err != nil {
		return request{}, err
	}
	job.TaskGroups = []*nomadapi.TaskGroup{g}
	out := request{job: &job}
	b := taskBuilder{config: m.config, Inputs: in, mhz: mhz, driver: driver, jobID: id}
	err = service.Containers(pod, func(c *corev1.Container, init bool, at *field.Path) error {
		return b.add(&out, g, c, len(g.Tasks), init, at)
	})
	if err != nil {
		return request{}, err
	}
	var paths []string
	for _, v := range out.variables {
		paths = append(paths, v.Path)
	}
	if len(paths) > 0 {
		job.Meta[metaVariables] = strings.Join(paths, " ")
	}
	return out, nil
}

// driver returns the driver of the pod's tasks.
func (m mapping) driver(pod *corev1.Pod) (string, error) {
	asked := pod.Annotations[AnnotationDriver]
	if asked == "" {
		return m.config.Drivers[0], nil
	}
	if !m.config.has(asked) {
		return "", errdefs.InvalidInputf("annotation %s: driver %q is not one of this node's: %s", AnnotationDriver, asked, strings.Join(m.config.Drivers, ", "))
	}
	return asked, nil
}

// datacenters returns the datacenters of the pod, which may narrow the configured datacenters.
func (m mapping) datacenters(pod *corev1.Pod) ([]string, error) {
	asked := strings.FieldsFunc(pod.Annotations[AnnotationDatacenters], func(r rune) bool { return r == ',' || r == ' ' })
	if len(asked) == 0 {
		return m.config.Datacenters, nil
	}
	for _, name := range asked {
		allowed := func(pattern string) bool {
			is, _ := path.Match(pattern, name) // an invalid pattern matches nothing
			return name == pattern || is && !strings.Contains(name, "*")
		}
		if !slices.ContainsFunc(m.config.Datacenters, allowed) {
			return nil, errdefs.InvalidInputf("annotation %s: %q is not one of this node's: %s", AnnotationDatacenters, name, strings.Join(m.config.Datacenters, ", "))
		}
	}
	return asked, nil
}

// network returns the network of the pod, with its host ports.
func (m mapping) network(pod *corev1.Pod) ([]*nomadapi.NetworkResource, error) {
	n := &nomadapi.NetworkResource{Mode: m.config.Network}
	if pod.Spec.HostNetwork {
		n.Mode = NetworkHost
	}
	if d := pod.Spec.DNSConfig; n.Mode == NetworkBridge {
		dns := &nomadapi.DNSConfig{}
		if pod.Spec.DNSPolicy == corev1.DNSClusterFirst || pod.Spec.DNSPolicy == "" {
			dns.Servers = m.config.DNS
		}
		if d != nil {
			dns.Servers, dns.Searches = append(dns.Servers[:len(dns.Servers):len(dns.Servers)], d.Nameservers...), d.Searches
			dns.Options = podspec.DNSOptions(d)
		}
		if len(dns.Servers)+len(dns.Searches)+len(dns.Options) > 0 {
			n.DNS = dns
		}
	}
	for i := range pod.Spec.Containers {
		for j, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			at := field.NewPath("spec", "containers").Index(i).Child("ports").Index(j)
			if p.HostIP != "" && p.HostIP != "0.0.0.0" {
				return nil, errdefs.InvalidInputf("%s: Nomad chooses the address of a host port", at.Child("hostIP"))
			}
			port := nomadapi.Port{Label: fmt.Sprintf("p%d_%d", i, j), Value: int(p.HostPort)}
			if n.Mode == NetworkBridge {
				port.To = int(p.ContainerPort)
			}
			// A reserved port of Nomad covers TCP and UDP, and a group reserves a number only once.
			if same := slices.IndexFunc(n.ReservedPorts, func(r nomadapi.Port) bool { return r.Value == port.Value }); same < 0 {
				n.ReservedPorts = append(n.ReservedPorts, port)
			} else if n.ReservedPorts[same].To != port.To {
				return nil, errdefs.InvalidInputf("%s: Nomad reserves %d for TCP and UDP together, and another protocol leads to port %d: use one container port",
					at.Child("containerPort"), port.Value, n.ReservedPorts[same].To)
			}
		}
	}
	if n.Mode == NetworkHost && len(n.ReservedPorts) == 0 {
		return nil, nil
	}
	return []*nomadapi.NetworkResource{n}, nil
}

// diskGiven is the default disk of a group, in MB.
const diskGiven = 300
