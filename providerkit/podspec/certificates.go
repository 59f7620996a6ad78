// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// trustBundle adds the certificates selected by a source. An optional source without certificates yields an empty file, as with a kubelet.
func (c *collector) trustBundle(ctx context.Context, source *corev1.ClusterTrustBundleProjection) error {
	if c.from.Bundles == nil {
		return errors.New("trust bundles: nothing can be read yet")
	}
	data, err := c.from.Bundles.TrustBundle(ctx, c.pod, source)
	if err != nil {
		return err
	}
	c.addPrivate(source.Path, data)
	return nil
}

// certificate adds a key with its certificate, in one file or in two.
func (c *collector) certificate(ctx context.Context, source *corev1.PodCertificateProjection) error {
	if c.from.Certificates == nil {
		return errors.New("certificates: nothing can be asked yet")
	}
	got, err := c.from.Certificates.Certificate(ctx, c.pod, source, c.had(source))
	if err != nil {
		return err
	}
	for path, data := range map[string][]byte{
		source.CredentialBundlePath: slices.Concat(got.Key, got.Chain), source.KeyPath: got.Key, source.CertificateChainPath: got.Chain,
	} {
		if path != "" {
			c.addPrivate(path, data)
		}
	}
	return nil
}

// had returns the key and certificate in the volume, or nil without both.
func (c *collector) had(source *corev1.PodCertificateProjection) []byte {
	switch {
	case c.from.Had == nil:
		return nil
	case source.CredentialBundlePath != "":
		return c.from.Had(source.CredentialBundlePath)
	case source.KeyPath != "" && source.CertificateChainPath != "":
		return slices.Concat(c.from.Had(source.KeyPath), c.from.Had(source.CertificateChainPath))
	}
	return nil
}
