// SPDX-License-Identifier: Apache-2.0

// Package certapi is a client for two kinds of certificates.k8s.io for volumes of pods, ClusterTrustBundle and PodCertificateRequest, in the version
// of the API server.
//
// The guarantee: for each kind separately, it uses v1 if the API server serves it, and otherwise v1beta1, with the same request content. If the API
// server lacks a kind, the error says so, and the next request checks again.
//
// Note: requests are plain JSON, without the typed client. The library also builds with a client-go that has these kinds only in older
// versions (decision 21), and a current Kubernetes serves none of those by default.
package certapi
