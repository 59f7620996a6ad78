// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// Usages of the certificates of nodes. Keys are elliptic, so there is no key encipherment.
var (
	ServingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
	ClientUsages  = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
)

// ClientTemplate returns the template for the client certificate of a node, as the signer and the Node authorizer require it.
func ClientTemplate(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}
}

// ServingTemplate returns the template for the server of a node at its addresses. It is nil without an address,
// because the signer would refuse it.
func ServingTemplate(node string, addresses []corev1.NodeAddress) *x509.CertificateRequest {
	template := ClientTemplate(node)
	for _, a := range addresses {
		ip := net.ParseIP(a.Address)
		switch a.Type {
		case corev1.NodeInternalIP, corev1.NodeExternalIP:
			if ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			}
		case corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeExternalDNS:
			if ip != nil {
				template.IPAddresses = append(template.IPAddresses, ip)
			} else if a.Address != "" {
				template.DNSNames = append(template.DNSNames, a.Address)
			}
		}
	}
	slices.Sort(template.DNSNames)
	template.DNSNames = slices.Compact(template.DNSNames)
	slices.SortFunc(template.IPAddresses, func(a, b net.IP) int { return strings.Compare(a.String(), b.String()) })
	template.IPAddresses = slices.CompactFunc(template.IPAddresses, net.IP.Equal)
	if len(template.DNSNames)+len(template.IPAddresses) == 0 {
		return nil
	}
	return template
}

// equalTemplates compares the content of templates.
func equalTemplates(a, b *x509.CertificateRequest) bool {
	return a.Subject.CommonName == b.Subject.CommonName && slices.Equal(a.Subject.Organization, b.Subject.Organization) &&
		slices.Equal(a.DNSNames, b.DNSNames) && slices.EqualFunc(a.IPAddresses, b.IPAddresses, net.IP.Equal)
}

// coversTemplate reports whether leaf has all names of template. The signer may add names.
func coversTemplate(leaf *x509.Certificate, template *x509.CertificateRequest) bool {
	hasIP := func(ip net.IP) bool { return slices.ContainsFunc(leaf.IPAddresses, ip.Equal) }
	return leaf.Subject.CommonName == template.Subject.CommonName &&
		allHold(template.Subject.Organization, func(org string) bool { return slices.Contains(leaf.Subject.Organization, org) }) &&
		allHold(template.DNSNames, func(name string) bool { return slices.Contains(leaf.DNSNames, name) }) &&
		allHold(template.IPAddresses, hasIP)
}

func allHold[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(v T) bool { return !holds(v) })
}
