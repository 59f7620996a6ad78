// SPDX-License-Identifier: Apache-2.0

// Package certapi speaks two kinds of certificates.k8s.io for volumes of pods, ClusterTrustBundle and
// PodCertificateRequest, in the API server's version.
//
// The guarantee: it uses v1 where the API server serves it, v1beta1 elsewhere, for each kind by itself, with the
// same request content. A kind missing at the API server leads to an error with that text, and the next request
// looks for it again.
//
// The surprise: requests are JSON over the plain client. The library builds with a client-go that has these
// kinds in older versions only (decision 21), and a current Kubernetes serves none of those by default.
package certapi
