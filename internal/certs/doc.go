// SPDX-License-Identifier: Apache-2.0

// Package certs is empty; the packages below it handle the certificates of a node:
//
//   - certrequest requests the node's own certificates by CertificateSigningRequest, and renews them
//   - certfile follows certificates and authorities in files
//   - clientcert sends requests to the API server with the current client certificate of a file
//   - podcerts requests the certificates for volumes of pods by PodCertificateRequest
//   - trustbundles reads the ClusterTrustBundles that volumes of pods select
//   - certapi is a client for these two kinds, in the version that the API server serves
package certs
