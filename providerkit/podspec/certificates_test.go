// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/providerkit/podspec"
)

func (world) TrustBundle(_ context.Context, _ *corev1.Pod, source *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	if *source.Name == "no" {
		return nil, errors.New("no bundle")
	}
	return []byte("certificates of " + *source.Name), nil
}

func (world) Certificate(_ context.Context, _ *corev1.Pod, source *corev1.PodCertificateProjection, had []byte) (node.PodCertificate, error) {
	if source.SignerName == "no" {
		return node.PodCertificate{}, errors.New("not issued")
	}
	if had != nil {
		return node.PodCertificate{Key: had}, nil
	}
	return node.PodCertificate{Key: []byte("key,"), Chain: []byte("chain")}, nil
}

func bundle(name, path string) corev1.VolumeProjection {
	return corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: &name, Path: path}}
}

func certificate(signer, both, key, chain string) corev1.VolumeProjection {
	return corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{
		SignerName: signer, CredentialBundlePath: both, KeyPath: key, CertificateChainPath: chain,
	}}
}

func TestCertificates(t *testing.T) {
	files := map[string]string{"old": "old bundle", "k": "old key,", "c": "old chain"}
	full := podspec.Sources{Bundles: world{}, Certificates: world{}}
	restarted := full
	restarted.Had = func(path string) []byte {
		if data, ok := files[path]; ok {
			return []byte(data)
		}
		return nil
	}
	for name, tt := range map[string]struct {
		from   podspec.Sources
		volume []corev1.VolumeProjection
		user   *int64
		want   string // path mode data, one a line; or the error
	}{
		"a bundle":                     {from: full, volume: []corev1.VolumeProjection{bundle("b", "ca.pem")}, want: "ca.pem -rw-r----- certificates of b\n"},
		"no bundle":                    {from: full, volume: []corev1.VolumeProjection{bundle("no", "ca.pem")}, want: "no bundle"},
		"nothing to read bundles from": {volume: []corev1.VolumeProjection{bundle("b", "ca.pem")}, want: "trust bundles: nothing can be read yet"},
		"key and certificate in one":   {from: full, volume: []corev1.VolumeProjection{certificate("s", "both", "", "")}, want: "both -rw-r----- key,chain\n"},
		"key and certificate in two":   {from: full, volume: []corev1.VolumeProjection{certificate("s", "", "key", "chain")}, want: "chain -rw-r----- chain\nkey -rw-r----- key,\n"},
		"all three, of one user": {from: full, volume: []corev1.VolumeProjection{certificate("s", "both", "key", "chain"), bundle("b", "ca")}, user: ptr.To[int64](7),
			want: "both -rw------- key,chain of 7\nca -rw------- certificates of b of 7\nchain -rw------- chain of 7\nkey -rw------- key, of 7\n"},
		"no certificate":                {from: full, volume: []corev1.VolumeProjection{certificate("no", "both", "", "")}, want: "not issued"},
		"nobody to ask":                 {volume: []corev1.VolumeProjection{certificate("s", "both", "", "")}, want: "certificates: nothing can be asked yet"},
		"what the volume has":           {from: restarted, volume: []corev1.VolumeProjection{certificate("s", "old", "", "")}, want: "old -rw-r----- old bundle\n"},
		"what the volume has in two":    {from: restarted, volume: []corev1.VolumeProjection{certificate("s", "", "k", "c")}, want: "c -rw-r----- \nk -rw-r----- old key,old chain\n"},
		"the volume has another file":   {from: restarted, volume: []corev1.VolumeProjection{certificate("s", "new", "", "")}, want: "new -rw-r----- key,chain\n"},
		"a key alone cannot be used on": {from: restarted, volume: []corev1.VolumeProjection{certificate("s", "", "k", "")}, want: "k -rw-r----- key,\n"},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.Volume{Name: "v", VolumeSource: projected(tt.volume...)}
			got, again, err := tt.from.Files(t.Context(), pod(func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: tt.user}
			}), volume, field.NewPath("v"))
			var text strings.Builder
			for _, f := range got {
				fmt.Fprintf(&text, "%s %v %s", f.Path, f.Mode, f.Data)
				if f.User != nil {
					fmt.Fprintf(&text, " of %d", *f.User)
				}
				text.WriteByte('\n')
			}
			if err != nil {
				text.WriteString(err.Error())
			}
			if text.String() != tt.want || !again.IsZero() {
				t.Errorf("got %q, again at %v, want %q", text.String(), again, tt.want)
			}
		})
	}
}
