// SPDX-License-Identifier: Apache-2.0

package cell

import "crypto/ed25519"

// SSHKeys returns the host key of the SSH server of the machine with a token, and the key with which the node logs in there. Both derive from the key of the
// authority, so a restarted node has the same ones.
func (a *Authority) SSHKeys(token string) (host, node ed25519.PrivateKey) {
	return ed25519.NewKeyFromSeed(hashParts(a.secret, "ssh host", token)), ed25519.NewKeyFromSeed(hashParts(a.secret, "ssh node"))
}
