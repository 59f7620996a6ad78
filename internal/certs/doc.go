// SPDX-License-Identifier: Apache-2.0

// Package certs holds nothing itself; what a node does with certificates is in the packages below it:
//
//   - certrequest asks for the node's own certificates by CertificateSigningRequest, and renews them
//   - certfile follows certificates and authorities in files
//   - clientcert sends requests to the API server with the client certificate that is in a file now
//   - podcerts asks for the certificates of pods' volumes by PodCertificateRequest
//   - trustbundles reads the ClusterTrustBundles that volumes of pods select
//   - certapi speaks these two kinds in whatever version the API server serves
package certs
