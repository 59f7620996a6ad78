// SPDX-License-Identifier: Apache-2.0

// Package sign lets requests be known as somebody's at services that want more than a header that never changes: by a signature over
// each request (SDK-HMAC-SHA256), or by a token of an IAM service that is replaced before it ends.
//
// The guarantee: a secret is asked for at each request and not kept, so one that changes is used from then on; no error has a secret or a
// token in it. The signatures are those of the vendor's own signer: testdata/golden.json is made by it, with the module golden.
//
// What surprises: the body of a request is read whole to be signed. Of one that becomes a stream only the handshake is signed.
package sign
