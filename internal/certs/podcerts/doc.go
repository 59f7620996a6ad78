// SPDX-License-Identifier: Apache-2.0

// Package podcerts requests the certificates for volumes of pods, and the next certificates before they end.
//
// The guarantees: every certificate has a key of its own. The key is made here, stays in memory, and is sent
// nowhere. A certificate is requested only for a volume of the pod, once. A denied or failed request is final
// for the pod, as in a kubelet: the error has the signer's reason. A certificate that could not be renewed stays
// in use as long as it is valid, and no longer. After a restart, a valid pair of key and certificate in the
// volume stays in use, else a new pair is requested. Everything is forgotten with the pod.
//
// The surprise: nothing runs here. A request makes progress when a caller asks for the certificate again; only
// the first call waits a moment. After a restart the signer's wish for the next renewal is unknown: the renewal
// then comes after two thirds of the certificate's life.
package podcerts
