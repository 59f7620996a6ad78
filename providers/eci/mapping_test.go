// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/identity"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providers/emulator/eci"
)

func testMapping() mapping {
	c := Config{
		Region: "cn-hangzhou", VSwitchIDs: []string{"vsw-1", "vsw-2"}, SecurityGroupID: "sg-1",
		Annotations: []string{annotationRAMRole, annotationPrefix + "vswitch", annotationPrefix + "use-specs", annotationPrefix + "extra-ephemeral-storage"},
		RAMRoles:    []string{"reader"},
	}
	c.completeSizes(func(string, ...any) {})
	return mapping{c, identity.Owner{Cluster: "home", Node: "node"}}
}

func testPod(spec corev1.PodSpec) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u-1", Annotations: map[string]string{}}, Spec: spec}
}

func list(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

// form returns the lines of the request for a pod, whose containers count as resolved.
func form(t *testing.T, pod *corev1.Pod, change func(*resolved)) (lines []string, err error) {
	t.Helper()
	r := resolved{&service.Inputs{Pod: pod, Containers: map[string]*corev1.Container{}}}
	for _, all := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range all {
			r.Containers[all[i].Name] = &all[i]
		}
	}
	if change != nil {
		change(&r)
	}
	request, err := testMapping().group(r)
	if err != nil {
		return nil, err
	}
	values := encode(request)
	values.Set("RegionId", "cn-hangzhou")
	if err := eci.Check("CreateContainerGroup", values); err != nil {
		t.Errorf("ECI would refuse: %v", err)
	}
	values.Del("RegionId")
	for _, name := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, name+"="+values.Get(name))
	}
	return lines, nil
}

func ptrTo[T any](v T) *T { return &v }

func TestAPodBecomesAGroup(t *testing.T) {
	pod := testPod(corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: ptrTo[int64](0), ActiveDeadlineSeconds: ptrTo[int64](60), Hostname: "h",
		DNSConfig:       &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.9"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: ptrTo("5")}}},
		HostAliases:     []corev1.HostAlias{{IP: "10.0.0.8", Hostnames: []string{"db"}}},
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: ptrTo[int64](0), Sysctls: []corev1.Sysctl{{Name: "net/core/somaxconn", Value: "9"}, {Name: "net.ipv4.ping_group_range", Value: "1"}}},
		InitContainers:  []corev1.Container{{Name: "i", Image: "init"}},
		Containers: []corev1.Container{{
			Name: "a", Image: "reg.example/img", TerminationMessagePolicy: corev1.TerminationMessageReadFile, Command: []string{"sh"}, Args: []string{"-c", "x"}, WorkingDir: "/w", ImagePullPolicy: corev1.PullAlways,
			Env: []corev1.EnvVar{{Name: "E", Value: ""}, {Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}},
				{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}},
			Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
			Resources:      corev1.ResourceRequirements{Requests: list("100m", "1Gi"), Limits: list("1", "3Gi")},
			VolumeMounts:   []corev1.VolumeMount{{Name: "f", MountPath: "/f", SubPath: "s", ReadOnly: true}},
			LivenessProbe:  &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromString("http")}}, PeriodSeconds: 3},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, FailureThreshold: 2},
			Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9)}},
				PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"up"}}}},
			SecurityContext: &corev1.SecurityContext{RunAsUser: ptrTo[int64](7), RunAsGroup: ptrTo[int64](8), RunAsNonRoot: ptrTo(true), ReadOnlyRootFilesystem: ptrTo(true),
				Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN"}}},
		}},
		Volumes: []corev1.Volume{
			{Name: "f", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "e", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory", SizeLimit: ptrTo(resource.MustParse("1Gi"))}}},
			{Name: "n", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nas", Path: "/p", ReadOnly: true}}},
		},
	})
	pod.Annotations = map[string]string{annotationRAMRole: "reader", annotationPrefix + "vswitch": "vsw-2", annotationPrefix + "extra-ephemeral-storage": "1500Mi", "other": "x"}
	got, err := form(t, pod, func(r *resolved) {
		c := r.Containers["a"].DeepCopy()
		c.Env[2] = corev1.EnvVar{Name: "S", Value: "secret"}
		r.Containers["a"] = c
		r.Files = map[string][]podspec.File{"f": {{Path: "d/x", Data: []byte("hi"), Mode: 0o400}, {Path: "t", Mode: 0o600, User: ptrTo[int64](7)}, {Path: "z"}}}
		r.Logins = []node.RegistryCredential{{Registry: "https://other.example.org/v1/", Username: "x", Password: "y"}, {Registry: "*.example", Username: "u", Password: "p"}}
	})
	if err != nil {
		t.Fatal(err)
	}
	name := identity.Owner{Cluster: "home", Node: "node"}.Name(identity.Of(pod))
	want := strings.Fields(`
		ActiveDeadlineSeconds=60 ClientToken=` + name + `
		Container.1.Arg.1=-c Container.1.Arg.2=x Container.1.Command.1=sh Container.1.Cpu=1
		Container.1.EnvironmentVar.1.Key=E Container.1.EnvironmentVar.1.Value=
		Container.1.EnvironmentVar.2.FieldRef.FieldPath=status.podIP Container.1.EnvironmentVar.2.Key=IP
		Container.1.EnvironmentVar.3.Key=S Container.1.EnvironmentVar.3.Value=secret Container.1.EnvironmentVarHide=true
		Container.1.Image=reg.example/img Container.1.ImagePullPolicy=Always Container.1.LifecyclePostStartHandlerExec.1=up Container.1.LifecyclePreStopHandlerTcpSocketPort=9
		Container.1.LivenessProbe.HttpGet.Path=/ Container.1.LivenessProbe.HttpGet.Port=80 Container.1.LivenessProbe.HttpGet.Scheme=HTTP Container.1.LivenessProbe.PeriodSeconds=3
		Container.1.Memory=3 Container.1.Name=a Container.1.Port.1.Port=80 Container.1.Port.1.Protocol=TCP
		Container.1.ReadinessProbe.Exec.Command.1=true Container.1.ReadinessProbe.FailureThreshold=2
		Container.1.SecurityContext.Capability.Add.1=NET_ADMIN Container.1.SecurityContext.ReadOnlyRootFilesystem=true Container.1.SecurityContext.RunAsUser=7
		Container.1.SecurityContextRunAsGroup=8 Container.1.SecurityContextRunAsNonRoot=true
		Container.1.VolumeMount.1.MountPath=/f Container.1.VolumeMount.1.Name=f Container.1.VolumeMount.1.ReadOnly=true Container.1.VolumeMount.1.SubPath=s
		Container.1.WorkingDir=/w ContainerGroupName=` + name + ` Cpu=1
		DnsConfig.NameServer.1=10.0.0.9 DnsConfig.Option.1.Name=ndots DnsConfig.Option.1.Value=5 DnsPolicy=Default EphemeralStorage=2
		HostAliase.1.Hostname.1=db HostAliase.1.Ip=10.0.0.8 HostName=h
		HostSecurityContext.Sysctl.1.Name=net.core.somaxconn HostSecurityContext.Sysctl.1.Value=9
		ImageRegistryCredential.1.Password=p ImageRegistryCredential.1.Server=reg.example ImageRegistryCredential.1.UserName=u
		InitContainer.1.Image=init InitContainer.1.Name=i InitContainer.1.SecurityContext.RunAsUser=0
		Memory=4 RamRoleName=reader RestartPolicy=Never SecurityContext.Sysctl.1.Name=net.ipv4.ping_group_range SecurityContext.Sysctl.1.Value=1 SecurityGroupId=sg-1
		Tag.1.Key=vk-cluster Tag.1.Value=home Tag.2.Key=vk-name Tag.2.Value=web Tag.3.Key=vk-namespace Tag.3.Value=ns
		Tag.4.Key=vk-node Tag.4.Value=node Tag.5.Key=vk-uid Tag.5.Value=u-1 TerminationGracePeriodSeconds=0 VSwitchId=vsw-2
		Volume.1.ConfigFileVolume.ConfigFileToPath.1.Content=aGk= Volume.1.ConfigFileVolume.ConfigFileToPath.1.Mode=0400 Volume.1.ConfigFileVolume.ConfigFileToPath.1.Path=d/x
		Volume.1.ConfigFileVolume.ConfigFileToPath.2.Mode=0644 Volume.1.ConfigFileVolume.ConfigFileToPath.2.Path=t
		Volume.1.ConfigFileVolume.ConfigFileToPath.3.Mode=0000 Volume.1.ConfigFileVolume.ConfigFileToPath.3.Path=z
		Volume.1.Name=f Volume.1.Type=ConfigFileVolume
		Volume.2.EmptyDirVolume.Medium=Memory Volume.2.EmptyDirVolume.SizeLimit=1Gi Volume.2.Name=e Volume.2.Type=EmptyDirVolume
		Volume.3.NFSVolume.Path=/p Volume.3.NFSVolume.ReadOnly=true Volume.3.NFSVolume.Server=nas Volume.3.Name=n Volume.3.Type=NFSVolume`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRefusals checks that a pod with an unsupported field is refused with that field.
func TestRefusals(t *testing.T) {
	type k = corev1.Container
	for path, change := range map[string]func(*corev1.Pod, *k){
		"spec.containers[0].startupProbe": func(p *corev1.Pod, c *k) {
			p.Spec.RestartPolicy, c.StartupProbe = corev1.RestartPolicyNever, fails()
		},
		"spec.containers[0].readinessProbe.tcpSocket.port": func(_ *corev1.Pod, c *k) {
			c.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("no")}}}
		},
		"spec.containers[0].lifecycle.preStop": func(_ *corev1.Pod, c *k) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}}
		},
		"spec.containers[0].ports[0].protocol":           func(_ *corev1.Pod, c *k) { c.Ports = []corev1.ContainerPort{{ContainerPort: 1, Protocol: "SCTP"}} },
		"spec.containers[0].volumeMounts[0].subPathExpr": func(_ *corev1.Pod, c *k) { c.VolumeMounts = []corev1.VolumeMount{{SubPathExpr: "x"}} },
		"spec.containers[0].resources.limits[example.com/fpga]": func(_ *corev1.Pod, c *k) {
			c.Resources.Limits = corev1.ResourceList{"example.com/fpga": resource.MustParse("1")}
		},
		"spec.containers[0].env[0]": func(_ *corev1.Pod, c *k) {
			c.Env = []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		},
		"spec.initContainers[0].envFrom[0].secretRef": func(p *corev1.Pod, _ *k) {
			p.Spec.InitContainers = []k{{Name: "i", EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}}}
		},
		"spec.initContainers[0].securityContext.runAsGroup": func(p *corev1.Pod, _ *k) {
			p.Spec.InitContainers = []k{{Name: "i"}}
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsGroup: ptrTo[int64](1)}
		},
		"spec.initContainers[0].securityContext.runAsNonRoot": func(p *corev1.Pod, _ *k) {
			p.Spec.InitContainers = []k{{Name: "i", SecurityContext: &corev1.SecurityContext{RunAsNonRoot: ptrTo(true)}}}
		},
		"spec.volumes[0]": func(p *corev1.Pod, _ *k) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}}
		},
		"spec.securityContext.sysctls[0]": func(p *corev1.Pod, _ *k) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel/shm_rmid_forced", Value: "1"}}}
		},
		"spec.containers[0].args":    func(_ *corev1.Pod, c *k) { c.Args = make([]string, 11) },
		"spec.containers[0].command": func(_ *corev1.Pod, c *k) { c.Command, c.Args = []string{"sh"}, make([]string, 100) },
		"spec.containers[0].env":     func(_ *corev1.Pod, c *k) { c.Env = make([]corev1.EnvVar, 241) },
		"spec.initContainers[0].env[0]": func(p *corev1.Pod, _ *k) {
			p.Spec.InitContainers = []k{{Name: "i", Env: []corev1.EnvVar{{Name: "E", Value: strings.Repeat("x", 257)}}}}
		},
		"spec.subdomain":                func(p *corev1.Pod, _ *k) { p.Spec.Subdomain = "s" },
		"spec.overhead":                 func(p *corev1.Pod, _ *k) { p.Spec.Overhead = list("1", "1Gi") },
		"the pod needs 65 CPUs and 1Gi": func(_ *corev1.Pod, c *k) { c.Resources.Requests = list("65", "1Gi") },
		"metadata.annotations[k8s.aliyun.com/eci-with-eip]":      func(p *corev1.Pod, _ *k) { p.Annotations[annotationPrefix+"with-eip"] = "true" },
		"metadata.annotations[k8s.aliyun.com/eci-never-heard]":   func(p *corev1.Pod, _ *k) { p.Annotations[annotationPrefix+"never-heard"] = "1" },
		"metadata.annotations[k8s.aliyun.com/eci-ram-role-name]": func(p *corev1.Pod, _ *k) { p.Annotations[annotationRAMRole] = "admin" },
		"metadata.annotations[k8s.aliyun.com/eci-vswitch]":       func(p *corev1.Pod, _ *k) { p.Annotations[annotationPrefix+"vswitch"] = "vsw-1,vsw-9" },
	} {
		t.Run(path, func(t *testing.T) {
			pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}})
			change(pod, &pod.Spec.Containers[0])
			_, err := form(t, pod, nil)
			if !errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), path+":") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestFilesOfECI checks the limits: 32 KB for a file, and 60 KB for all files of a pod in all volumes.
func TestFilesOfECI(t *testing.T) {
	for name, c := range map[string]struct {
		sizes [2]int
		want  string // the field; "": the pod is accepted
	}{
		"just so":            {[2]int{28 << 10, 32 << 10}, ""},
		"one file":           {[2]int{0, 32<<10 + 1}, "spec.volumes[1]"},
		"too large together": {[2]int{28<<10 + 1, 32 << 10}, "spec.volumes"},
	} {
		pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}, Volumes: []corev1.Volume{
			{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
			{Name: "w", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
		}})
		_, err := form(t, pod, func(r *resolved) {
			r.Files = map[string][]podspec.File{"v": {{Path: "f", Data: make([]byte, c.sizes[0])}}, "w": {{Path: "f", Data: make([]byte, c.sizes[1])}}}
		})
		if c.want == "" && err != nil || c.want != "" && (!errdefs.IsInvalidInput(err) || !strings.HasPrefix(err.Error(), c.want+":")) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestManyArgumentsAreWordsOfTheCommand checks that arguments beyond the limit become words of the command,
// which has room for them.
func TestManyArgumentsAreWordsOfTheCommand(t *testing.T) {
	args := strings.Fields("1 2 3 4 5 6 7 8 9 10 11")
	lines, err := form(t, testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", Command: []string{"sh", "-c"}, Args: args}}}), nil)
	if err != nil || !slices.Contains(lines, "Container.1.Command.13=11") || slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Container.1.Arg") }) {
		t.Errorf("got %v, %v", lines, err)
	}
}

// TestStorageBeyondTheFreeIsBought checks that the requests of all containers count, and that a larger value of
// the annotation wins.
func TestStorageBeyondTheFreeIsBought(t *testing.T) {
	for _, c := range []struct {
		request, annotation string
		want                string // of the request; "": the request has none
	}{{"50Mi", "", ""}, {"15Gi", "", ""}, {"20Gi", "", "EphemeralStorage=10"}, {"20Gi", "5Gi", "EphemeralStorage=10"}, {"20Gi", "50Gi", "EphemeralStorage=50"}} {
		storage := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(c.request)}}
		pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", Resources: storage}, {Name: "b", Image: "i", Resources: storage}}})
		if c.annotation != "" {
			pod.Annotations[annotationPrefix+"extra-ephemeral-storage"] = c.annotation
		}
		got, err := form(t, pod, nil)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, line := range got {
			if strings.HasPrefix(line, "EphemeralStorage=") {
				said = line
			}
		}
		if said != c.want {
			t.Errorf("twice %s, annotation %q: got %q, want %q", c.request, c.annotation, said, c.want)
		}
	}
}

// TestAnnotations checks that allowed annotations are written in the form of ECI, that other values are refused,
// and that other annotations are dropped.
func TestAnnotations(t *testing.T) {
	m := testMapping()
	m.config.Annotations, m.config.SecurityGroupIDs = known(), []string{"sg-2"}
	for name, c := range map[string]struct{ good, wants, bad string }{
		"use-specs":               {"ecs.c6.large", "InstanceType=ecs.c6.large", ""},
		"vswitch":                 {"vsw-2", "VSwitchId=vsw-2", "vsw-9"},
		"schedule-strategy":       {"VSwitchRandom", "ScheduleStrategy=VSwitchRandom", "Best"},
		"security-group":          {"sg-2", "SecurityGroupId=sg-2", "sg-1"},
		"spot-strategy":           {"SpotAsPriceGo", "SpotStrategy=SpotAsPriceGo", "Cheap"},
		"spot-price-limit":        {"0.25", "SpotPriceLimit=0.25", "NaN"},
		"image-snapshot-id":       {"imc-1", "ImageSnapshotId=imc-1", ""},
		"image-cache":             {"true", "AutoMatchImageCache=true", "perhaps"},
		"ram-role-name":           {"reader", "RamRoleName=reader", "admin"},
		"extra-ephemeral-storage": {"50Gi", "EphemeralStorage=50", "-1Gi"},
		"with-eip":                {"true", "AutoCreateEip=true", "yes"},
		"eip-bandwidth":           {"10", "EipBandwidth=10", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(m mapping, value string) (out createRequest, err error) {
				pod := testPod(corev1.PodSpec{})
				if name == "eip-bandwidth" {
					pod.Annotations[annotationPrefix+"with-eip"] = "true"
				}
				pod.Annotations[annotationPrefix+name] = value
				err = m.config.annotate(pod, &out)
				return out, err
			}
			out, err := set(m, c.good)
			if err != nil {
				t.Fatal(err)
			}
			field, value, _ := strings.Cut(c.wants, "=")
			if got := encode(out).Get(field); got != value {
				t.Errorf("%s is %q, want %q", field, got, value)
			}
			if _, err := set(m, c.bad); c.bad != "" && !errdefs.IsInvalidInput(err) {
				t.Errorf("%q: got %v", c.bad, err)
			}
			m := m
			m.config.Annotations = nil
			if _, err := set(m, c.good); !errdefs.IsInvalidInput(err) {
				t.Errorf("it is not allowed, and was let through: %v", err)
			}
		})
	}
	if n := len(known()); n != 12 {
		t.Errorf("%d annotations are known, and 12 are tested", n)
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct{ name, cpu, memory, want string }{
		{"none", "", "", "1/2"}, {"a little", "100m", "100Mi", "0.25/0.5"}, {"between", "300m", "600Mi", "0.5/1"},
		{"much memory for few CPUs", "500m", "5Gi", "1/8"}, {"all", "64", "512Gi", "64/512"},
	} {
		t.Run(c.name, func(t *testing.T) {
			pod := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}})
			if c.cpu != "" {
				pod.Spec.Containers[0].Resources.Requests = list(c.cpu, c.memory)
			}
			got, err := form(t, pod, nil)
			cpu, memory, _ := strings.Cut(c.want, "/")
			if err != nil || !slices.Contains(got, "Cpu="+cpu) || !slices.Contains(got, "Memory="+memory) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	specs := testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i"}}})
	specs.Annotations[annotationPrefix+"use-specs"] = "2-4Gi,ecs.c6.large"
	if got, err := form(t, specs, nil); err != nil || !slices.Contains(got, "InstanceType=2-4Gi,ecs.c6.large") || slices.Contains(got, "Cpu=1") {
		t.Errorf("a type by an annotation: %v, %v", got, err)
	}
}

// TestCredentials checks that the first login for an image with a registry name is used.
func TestCredentials(t *testing.T) {
	logins := func(images []string, logins ...node.RegistryCredential) ([]registryCredential, error) {
		pod := testPod(corev1.PodSpec{})
		for _, image := range images {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Image: image})
		}
		return resolved{&service.Inputs{Pod: pod, Logins: logins}}.logins()
	}
	got, err := logins([]string{"reg.example.com/x"}, node.RegistryCredential{Registry: "reg.example.com", IdentityToken: "t"},
		node.RegistryCredential{Registry: "https://reg.example.com/v1/", Username: "u", Password: "p:w"}, node.RegistryCredential{Registry: "reg.example.com", Username: "v"})
	if diff := cmp.Diff([]registryCredential{{"reg.example.com", "u", "p:w"}}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	got, err = logins([]string{"reg.example.com/a/x", "reg.example.com/b/x"}, node.RegistryCredential{Registry: "reg.example.com/a", Username: "u", Password: "p"},
		node.RegistryCredential{Registry: "reg.example.com/b", Username: "v", Password: "q"})
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[1].image") {
		t.Errorf("two logins for a registry: got %v, %v", got, err)
	}
}

// TestSecretsInCommands checks that a secret in a command is refused with its field, because ECI shows commands.
func TestSecretsInCommands(t *testing.T) {
	from := func(name string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}
	}
	_, err := form(t, testPod(corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i", Env: []corev1.EnvVar{from("PW")}, Args: []string{"$(PW)"}}}}), func(r *resolved) {
		r.Containers["a"] = &corev1.Container{Name: "a", Image: "i", Env: []corev1.EnvVar{{Name: "PW", Value: "s"}}, Args: []string{"s"}}
	})
	if !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "spec.containers[0].args[0]") {
		t.Errorf("got %v", err)
	}
}

// TestHugePagesAreRefused checks the media of volumes: ECI has no huge pages.
func TestHugePagesAreRefused(t *testing.T) {
	for medium, ok := range map[corev1.StorageMedium]bool{"": true, "Memory": true, "HugePages": false, "HugePages-2Mi": false} {
		v := corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: medium}}}
		if _, err := (resolved{&service.Inputs{}}).volume(&v, field.NewPath("v")); errdefs.IsInvalidInput(err) == ok {
			t.Errorf("%q: got %v", medium, err)
		}
	}
}
