// SPDX-License-Identifier: Apache-2.0

// Package podcerts requests the certificates for volumes of pods, and the next certificates before they end.
//
// The guarantees: every certificate has its own key. This package generates the key, keeps it in memory, and sends it nowhere. A certificate is
// requested only for a volume of the pod, and only once. A denied or failed request is final for the pod, as in a kubelet: the error has the signer's
// reason. A certificate that could not be renewed stays in use until it expires. After a restart, a valid pair of key and certificate in the volume
// stays in use; otherwise, a new pair is requested. All data of a pod is dropped with the pod.
//
// Note: there are no background goroutines. A request makes progress when a caller asks for the certificate again. Only the first call waits
// for a moment. After a restart, the renewal time of the signer is unknown, so the renewal is after two thirds of the certificate's lifetime.
package podcerts
