// SPDX-License-Identifier: Apache-2.0

// Package podcerts asks for the certificates that volumes of pods have, and for the next ones before they end.
//
// The guarantees: every certificate has a key of its own, which is made here, is in memory only and is sent nowhere; only what a
// volume of the pod asks for is asked for, once. A request that is denied or failed is final for the pod, as in a kubelet: the
// error has the signer's reason. A certificate that could not be renewed is given for as long as it is valid, and no longer.
// After a restart, key and certificate that the volume has are used on if they belong together and are valid, and
// otherwise others are asked for. All is forgotten with the pod.
//
// What surprises: nothing runs here. A request is looked after when somebody asks for the certificate again; only for
// the first one does the question wait a moment. After a restart nobody knows when the signer wanted to be asked
// again: that is when two thirds of the certificate's life are over.
package podcerts
