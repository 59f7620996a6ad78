// SPDX-License-Identifier: Apache-2.0

package fargate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/service"
	"github.com/virtual-kubelet/virtual-kubelet/providertest/program"
)

// claimBuilder returns a builder with a pod that claims a PersistentVolume, and the volume.
func claimBuilder(spec corev1.PersistentVolumeSpec) (*builder, *corev1.Volume) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
		Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
	}}}}
	in := &service.Inputs{Pod: pod, Claimed: map[string]*corev1.PersistentVolume{"data": {ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: spec}}}
	return &builder{Inputs: in}, &pod.Spec.Volumes[0]
}

// TestClaimsAreFileSystems checks that an EFS PersistentVolume is mounted by its volumeHandle: a file system,
// with a path or an access point. The forms come from kubernetes-sigs/aws-efs-csi-driver, docs/README.md.
func TestClaimsAreFileSystems(t *testing.T) {
	const id = "fs-0123456789abcdef0"
	efs := func(handle string, options ...string) corev1.PersistentVolumeSpec {
		return corev1.PersistentVolumeSpec{MountOptions: options, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "efs.csi.aws.com", VolumeHandle: handle, ReadOnly: true},
		}}
	}
	plain := efs(id)
	plain.CSI.VolumeAttributes = map[string]string{"encryptInTransit": "false"}
	for _, c := range []struct {
		spec corev1.PersistentVolumeSpec
		want string // root, encryption, access point, iam
	}{
		{efs(id), "/ ENABLED"}, {efs(id + ":/team/a"), "/team/a ENABLED"}, {efs(id + "::fsap-0123456789abcdef0"), "/ ENABLED fsap-0123456789abcdef0"},
		{efs(id+"::fsap-0123456789abcdef0", "tls", "iam"), "/ ENABLED fsap-0123456789abcdef0 ENABLED"}, {efs(id, "iam"), "/ ENABLED ENABLED"}, {plain, "/ DISABLED"},
		{corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: id + ".efs.eu-central-1.amazonaws.com", Path: "/n", ReadOnly: true}}}, "/n ENABLED"},
	} {
		b, v := claimBuilder(c.spec)
		out, err := volumeOf(b.Inputs, Config{}, v, field.NewPath("spec"))
		if err != nil {
			t.Errorf("%+v: %v", c.spec, err)
			continue
		}
		e := out.EfsVolumeConfiguration
		got := *e.RootDirectory + " " + string(e.TransitEncryption)
		if a := e.AuthorizationConfig; a != nil {
			got = strings.Join(strings.Fields(got+" "+aws.ToString(a.AccessPointId)+" "+string(a.Iam)), " ")
		}
		if got != c.want || *e.FileSystemId != id || !b.fixed("data") {
			t.Errorf("%s: got %s of %s, read-only %t", c.want, got, *e.FileSystemId, b.fixed("data"))
		}
	}
	for want, spec := range map[string]corev1.PersistentVolumeSpec{
		"a path or an access point":            efs(id + ":/a:fsap-0123456789abcdef0"),
		"want that of a file system":           efs("vol-1"),
		"ECS attaches no volume of EBS":        {PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: ebsDriver, VolumeHandle: "vol-1"}}},
		"spec.persistentVolume.nfs.server: \"": {PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example"}}},
	} {
		b, v := claimBuilder(spec)
		if _, err := volumeOf(b.Inputs, Config{}, v, field.NewPath("spec")); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
}

// ebs returns a pod with inline volumes of EBS.
func ebs(name string, all ...map[string]string) *corev1.Pod {
	pod := podOf(name, program.Program{})
	for i, attributes := range all {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v" + string(rune('0'+i)), VolumeSource: corev1.VolumeSource{
			CSI: &corev1.CSIVolumeSource{Driver: ebsDriver, FSType: aws.String("ext4"), VolumeAttributes: attributes},
		}})
	}
	return pod
}

const infrastructure = "arn:aws:iam::123456789012:role/infrastructure"

// TestVolumesOfEBS checks that an inline volume of EBS is created and removed with the task, and that ECS
// accepts the request.
func TestVolumesOfEBS(t *testing.T) {
	m := testMapping(t)
	m.config.InfrastructureRole, m.config.LargestVolume = infrastructure, resource.MustParse("1Ti")
	pod := ebs("big", map[string]string{"size": "300G", "type": "io2", "iops": "4000", "encrypted": "true"})
	task, err := m.task(pod, "d")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(task.VolumeConfigurations[0].ManagedEBSVolume)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"RoleArn":"arn:aws:iam::123456789012:role/infrastructure","Encrypted":true,"FilesystemType":"ext4","Iops":4000,"KmsKeyId":null,"SizeInGiB":280,"SnapshotId":null,` +
		`"TagSpecifications":null,"TerminationPolicy":{"DeleteOnTermination":true},"Throughput":null,"VolumeInitializationRate":null,"VolumeType":"io2"}`
	if string(got) != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	d, err := m.definition(testResolved(pod), nil)
	if err != nil || len(d.Volumes) != 1 || !aws.ToBool(d.Volumes[0].ConfiguredAtLaunch) {
		t.Errorf("got %+v, %v", d, err)
	}
	p := open(t, cloudOf(t), func(c *Config) { c.InfrastructureRole, c.LargestVolume = infrastructure, m.config.LargestVolume })
	if _, err := p.Create(t.Context(), testResolved(pod)); err != nil {
		t.Errorf("ECS does not take the task: %v", err)
	}
	for want, pod := range map[string]*corev1.Pod{
		"one volume of EBS":              ebs("p", map[string]string{"size": "1Gi"}, map[string]string{"size": "1Gi"}),
		"want size, or snapshotId":       ebs("p", nil),
		"[size]: \"much\"":               ebs("p", map[string]string{"size": "much"}),
		"type st1 has 125 to 16384 GiB":  ebs("p", map[string]string{"size": "1Gi", "type": "st1"}),
		"[type]: \"fast\"":               ebs("p", map[string]string{"size": "1Gi", "type": "fast"}),
		"needs iops":                     ebs("p", map[string]string{"size": "10Gi", "type": "io1"}),
		"[throughput]":                   ebs("p", map[string]string{"size": "10Gi", "type": "gp2", "throughput": "125"}),
		"[encrypted]":                    ebs("p", map[string]string{"size": "10Gi", "encrypted": "perhaps"}),
		"[volumeId]":                     ebs("p", map[string]string{"volumeId": "vol-1"}),
		"spec.volumes[0].csi.driver: s3": {Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "s3"}}}}}},
	} {
		if _, err := m.task(pod, "d"); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
	if _, err := testMapping(t).task(pod, "d"); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), "name infrastructureRole") {
		t.Errorf("without a role: got %v", err)
	}
}

// TestVolumesOfEBSAreThoseThatTheConfigurationAllows checks that a pod cannot read an unlisted snapshot or get a
// volume larger than largestVolume, and that check refuses it in the same way as the node.
func TestVolumesOfEBSAreThoseThatTheConfigurationAllows(t *testing.T) {
	const listed, other = "snap-0123456789abcdef0", "snap-0123456789abcdef1"
	p := open(t, cloudOf(t), func(c *Config) { c.InfrastructureRole, c.Snapshots = infrastructure, []string{listed} })
	for _, attributes := range []map[string]string{{"snapshotId": listed}, {"snapshotId": listed, "size": "200Gi"}, {"size": "200Gi"}} {
		pod := ebs("allowed", attributes)
		task, err := p.mapping.task(pod, "d")
		if err != nil {
			t.Errorf("%v: %v", attributes, err)
			continue
		}
		if got := aws.ToString(task.VolumeConfigurations[0].ManagedEBSVolume.SnapshotId); got != attributes["snapshotId"] {
			t.Errorf("%v: got the snapshot %q", attributes, got)
		}
	}
	const at = "spec.volumes[0].csi.volumeAttributes"
	for want, attributes := range map[string]map[string]string{
		at + `[snapshotId]: "` + other + `" is none of snapshots of this node's configuration`: {"snapshotId": other, "size": "1Gi"},
		at + `[snapshotId]: "" is none of snapshots`:                                           {"snapshotId": "", "size": "1Gi"},
		at + `[size]: "201Gi" is more than 200Gi, which is largestVolume`:                      {"size": "201Gi"},
		at + `[size]: "16Ti" is more than 200Gi, which is largestVolume`:                       {"size": "16Ti", "snapshotId": listed},
	} {
		pod := ebs("refused", attributes)
		if _, err := p.mapping.task(pod, "d"); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
		if err := p.mapping.check(pod); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("check: want a refusal with %q, got %v", want, err)
		}
	}
}
