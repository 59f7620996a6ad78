// SPDX-License-Identifier: Apache-2.0

// Package sign authenticates requests at services that need more than a constant header. It adds a signature to each request (SDK-HMAC-SHA256), or a
// token of an IAM service that is replaced before it expires.
//
// The guarantee: the package asks for a secret at each request and does not keep it, so a changed secret is used from then on. No error contains a
// secret or a token. The signatures equal those of the vendor's signer: the module golden makes testdata/golden.json with that signer.
//
// Note: the whole body of a request is read before it is signed. If a request becomes a stream, only the handshake is signed.
package sign
