// SPDX-License-Identifier: Apache-2.0

// Package certapi speaks the two kinds of certificates.k8s.io that volumes of pods need, ClusterTrustBundle and
// PodCertificateRequest, with whatever version of them the API server serves.
//
// The guarantee: v1 is used where it is served, v1beta1 elsewhere, by kind; what is asked is the same in both. A kind
// that is not served is an error that says so, and is looked for again at the next question.
//
// What surprises: requests are JSON over the plain client. The library is built with a client-go that has these kinds
// in older versions only (decision 21), and a Kubernetes of today serves none of those unless it is told to.
package certapi
