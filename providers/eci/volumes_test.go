// SPDX-License-Identifier: Apache-2.0

package eci

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// claimForm returns the lines of the request for a pod that claims a PersistentVolume.
func claimForm(t *testing.T, source corev1.PersistentVolumeSource, readOnly bool) ([]string, error) {
	t.Helper()
	pod := testPod(corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: readOnly},
		}}},
	})
	lines, err := form(t, pod, func(r *resolved) {
		r.Claimed = map[string]*corev1.PersistentVolume{"data": {ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}}
	})
	return slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "Volume") }), err
}

// TestClaimsAreVolumes checks that a PersistentVolume of the vendor's drivers becomes the matching volume of
// ECI. The forms come from the vendor's documentation of statically provisioned volumes:
// kubernetes-sigs/alibaba-cloud-csi-driver, docs/nas.md and docs/disk.md.
func TestClaimsAreVolumes(t *testing.T) {
	nas := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "nasplugin.csi.alibabacloud.com", VolumeHandle: "pv-nas",
		VolumeAttributes: map[string]string{"server": "x.cn-hangzhou.nas.aliyuncs.com", "path": "/csi"}}}
	disk := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "diskplugin.csi.alibabacloud.com", VolumeHandle: "d-bp1x", FSType: "xfs"}}
	nfs := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/p"}}
	const mount = "Container.1.VolumeMount.1.MountPath=/data Container.1.VolumeMount.1.Name=data "
	const fixed = mount + "Container.1.VolumeMount.1.ReadOnly=true "
	for _, c := range []struct {
		source   corev1.PersistentVolumeSource
		readOnly bool
		want     string
	}{
		{nas, false, mount + "Volume.1.NFSVolume.Path=/csi Volume.1.NFSVolume.Server=x.cn-hangzhou.nas.aliyuncs.com Volume.1.Name=data Volume.1.Type=NFSVolume"},
		{nas, true, fixed + "Volume.1.NFSVolume.Path=/csi Volume.1.NFSVolume.ReadOnly=true Volume.1.NFSVolume.Server=x.cn-hangzhou.nas.aliyuncs.com Volume.1.Name=data Volume.1.Type=NFSVolume"},
		{disk, false, mount + `Volume.1.FlexVolume.Driver=alicloud/disk Volume.1.FlexVolume.FsType=xfs Volume.1.FlexVolume.Options={"volumeId":"d-bp1x"} Volume.1.Name=data Volume.1.Type=FlexVolume`},
		{disk, true, fixed + `Volume.1.FlexVolume.Driver=alicloud/disk Volume.1.FlexVolume.FsType=xfs Volume.1.FlexVolume.Options={"volumeId":"d-bp1x"} Volume.1.Name=data Volume.1.Type=FlexVolume`},
		{nfs, false, mount + "Volume.1.NFSVolume.Path=/p Volume.1.NFSVolume.Server=s Volume.1.Name=data Volume.1.Type=NFSVolume"},
	} {
		lines, err := claimForm(t, c.source, c.readOnly)
		if got := strings.Join(lines, " "); err != nil || got != c.want {
			t.Errorf("got\n%s, %v, want\n%s", got, err, c.want)
		}
	}
	cpfs, none, ntfs := *nas.CSI, *nas.CSI, *disk.CSI
	cpfs.VolumeAttributes, none.VolumeAttributes, ntfs.FSType = map[string]string{"server": "s", "mountProtocol": "cpfs-nfs"}, nil, "ntfs"
	for want, csi := range map[string]corev1.CSIPersistentVolumeSource{
		"mountProtocol cpfs-nfs": cpfs, "attribute server": none, "fsType": ntfs, "mounts NFS": {Driver: "ossplugin.csi.alibabacloud.com"},
	} {
		if _, err := claimForm(t, corev1.PersistentVolumeSource{CSI: &csi}, false); !errdefs.IsInvalidInput(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "spec.volumes[0]: PersistentVolume pv") {
			t.Errorf("want a refusal with %q, got %v", want, err)
		}
	}
}
