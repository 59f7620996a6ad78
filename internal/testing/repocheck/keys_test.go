// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

// TestKeysAreFound generates key material of every kind, and the check finds it.
func TestKeysAreFound(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	random := strings.NewReplacer("+", "a", "/", "b", "=", "c").Replace(base64.StdEncoding.EncodeToString(der))
	for name, text := range map[string]string{
		"a PEM file":             block,
		"a string in a program":  "const key = `" + block + "`",
		"an escaped string":      `"` + strings.ReplaceAll(block, "\n", `\n`) + `"`,
		"a kubeconfig with key":  "users:\n- name: a\n  user:\n    client-key-data: " + base64.StdEncoding.EncodeToString([]byte(block)),
		"a kubeconfig of tokens": "users:\n- name: a\n  user:\n    token: " + random[:48] + "\n",
		"JSON":                   "{\n  \"token\": \"" + random[:48] + "\"\n}",
		"a JSON Web Token":       "x eyJ" + random[:20] + ".eyJ" + random[:30] + "." + random[:40],
		"a cloud's key":          "AKIA" + strings.ToUpper(strings.Repeat("a1", 8)),
		"a service's token":      "ghp_" + random[:36],
		"a registry's":           `{"auths": {"r": {"auth": "` + random[:40] + `"}}}`,
	} {
		if found := keysIn("file", []byte(text)); len(found) == 0 || strings.Contains(strings.Join(found, ""), random[:20]) {
			t.Errorf("%s: got %q", name, found)
		}
	}
	for _, name := range []string{"a/tls.key", "id_ed25519", "x/kubeconfig", "store.p12"} {
		if len(keysIn(name, nil)) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
	for _, text := range []string{
		`pem.Block{Type: "EC PRIVATE KEY", Bytes: der}`, "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----", "token: secret", "password: \"hidden\"",
		"-----BEGIN CERTIFICATE-----\n" + random, "--tls-private-key-file kubelet.key",
	} {
		if found := keysIn("file.go", []byte(text)); len(found) > 0 {
			t.Errorf("%q: got %q", text, found)
		}
	}
}
