// SPDX-License-Identifier: Apache-2.0

package azblobs

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
)

// azuriteAccount and azuriteKey are Azurite's default credentials, which its documentation publishes.
const (
	azuriteAccount = "devstoreaccount1"
	azuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// TestAzurite makes all requests of this package to Azurite, the vendor's emulator of Azure Storage. `make
// azurite` installs the emulator, and records the table of results.
func TestAzurite(t *testing.T) {
	program := os.Getenv("VK_AZURITE")
	if program == "" {
		t.Skip("it needs azurite-blob of npm: make azurite")
	}
	c := startAzurite(t, program)
	ctx := t.Context()
	if _, err := c.requestProperties(ctx, http.MethodPut, "", "restype=container", nil, nil); err != nil {
		t.Fatal(err)
	}
	is := func(err error, wants ...string) error {
		for _, want := range wants {
			if err != nil || want != "" {
				return fmt.Errorf("got %w, %s", err, want)
			}
		}
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a claim is made: 201", func() error { return c.Put(ctx, "n/pods/u1/claim", []byte("first"), nil, true) }},
		{"a second claim is refused: 409", func() error {
			if err := c.Put(ctx, "n/pods/u1/claim", []byte("second"), nil, true); !Has(err, http.StatusConflict) {
				return fmt.Errorf("got %v", err)
			}
			has, err := c.Get(ctx, "n/pods/u1/claim", "", 0)
			return is(err, differs(string(has.Data), "first"))
		}},
		{"an order in metadata changes the ETag, and not the data", func() error {
			if err := c.Put(ctx, "n/pods/u1/pod.json", []byte("{}"), nil, false); err != nil {
				return err
			}
			before, err := c.Get(ctx, "n/pods/u1/pod.json", "", 0)
			if err == nil {
				err = c.SetMetadata(ctx, "n/pods/u1/pod.json", map[string]string{"grace": "30"})
			}
			if err != nil {
				return err
			}
			after, err := c.Get(ctx, "n/pods/u1/pod.json", before.ETag, 0)
			return is(err, differs(string(after.Data), "{}"), differs(after.Metadata["grace"], "30"))
		}},
		{"a blob with the same ETag is not read again: 304", func() error {
			has, err := c.Head(ctx, "n/pods/u1/pod.json")
			if err != nil {
				return err
			}
			again, err := c.Get(ctx, "n/pods/u1/pod.json", has.ETag, 0)
			return is(err, differs(string(again.Data), ""))
		}},
		{"one list has the metadata of all", func() error {
			if err := c.Put(ctx, "n/status/u1", []byte("long"), map[string]string{"status": "c2hvcnQ="}, false); err != nil {
				return err
			}
			all, err := c.List(ctx, "n/status/", true)
			if err != nil || len(all) != 1 {
				return fmt.Errorf("got %v, %w", all, err)
			}
			has, err := c.Head(ctx, "n/status/u1")
			return is(err, differs(all[0].Metadata["status"], "c2hvcnQ="), differs(strings.Trim(all[0].ETag, `"`), strings.Trim(has.ETag, `"`)))
		}},
		{"a log grows, and is read from an offset on", func() error {
			for range 2 { // the answer to the first may have been lost
				if err := c.NewAppend(ctx, "n/log"); err != nil {
					return err
				}
			}
			for range 2 {
				if err := c.Append(ctx, "n/log", []byte("one\n"), 0); err != nil {
					return err
				}
			}
			if err := c.Append(ctx, "n/log", []byte("two\n"), 4); err != nil {
				return err
			}
			rest, err := c.Get(ctx, "n/log", "", 4)
			if err != nil {
				return err
			}
			none, err := c.Get(ctx, "n/log", "", 8)
			return is(err, differs(string(rest.Data), "two\n"), differs(string(none.Data), ""))
		}},
		{"the program is uploaded", func() error {
			data := bytes.Repeat([]byte("program"), 1<<20)
			if err := c.Upload(ctx, "bin/program", bytes.NewReader(data), int64(len(data))); err != nil {
				return err
			}
			has, err := c.Head(ctx, "bin/program")
			return is(err, differs(fmt.Sprint(has.Size), fmt.Sprint(len(data))))
		}},
		{"what is not there is an error of the kind not-found", func() error {
			if _, err := c.Get(ctx, "n/none", "", 0); !errdefs.IsNotFound(err) {
				return fmt.Errorf("got %v", err)
			}
			return c.Delete(ctx, "n/none")
		}},
		{"several blobs are removed by one request, and one that is not there is no error", func() error {
			if err := c.DeleteBatch(ctx, []string{"n/log", "n/none", "n/status/u1"}); err != nil {
				return err
			}
			all, err := c.List(ctx, "n/", false)
			return is(err, differs(fmt.Sprint(len(all)), "2"))
		}},
		{"a signature to read reads: 200, and does not write: 403", func() error {
			return is(nil, differs(c.signed(ctx, "r", http.MethodGet), "200"), differs(c.signed(ctx, "r", http.MethodPut), "403"))
		}},
		{"a signature to write writes: 201", func() error { return is(nil, differs(c.signed(ctx, "w", http.MethodPut), "201")) }},
		{"without a signature nothing is read", func() error { return is(nil, differs(c.signed(ctx, "", http.MethodGet), "403")) }},
	} {
		result := "ok"
		if err := step.do(); err != nil {
			result = err.Error()
			t.Errorf("%s: %v", step.what, err)
		}
		t.Logf("| %s | %s |", step.what, result)
	}
}

// differs returns "" for the expected value.
func differs(got, want string) string {
	if got == want {
		return ""
	}
	return fmt.Sprintf("%q, want %q", got, want)
}

// signed requests the claim with a shared access signature for the given rights, and returns the status.
func (c azurite) signed(ctx context.Context, rights, method string) string {
	const name, version = "n/pods/u1/claim", "2021-12-02"
	q := url.Values{}
	if rights != "" {
		until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		u, _ := url.Parse(c.URL)
		text := strings.Join([]string{rights, "", until, "/blob" + u.Path + "/" + name, "", "", "", version, "b", "", "", "", "", "", "", ""}, "\n")
		key, _ := base64.StdEncoding.DecodeString(azuriteKey)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		q = url.Values{"sp": {rights}, "se": {until}, "sv": {version}, "sr": {"b"}, "sig": {base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+"/"+name+"?"+q.Encode(), strings.NewReader(map[string]string{http.MethodPut: "third"}[method]))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("x-ms-version", version)
	if method == http.MethodPut {
		r.Header.Set("x-ms-blob-type", "BlockBlob")
	}
	answer, err := c.HTTP.Do(r)
	if err != nil {
		return err.Error()
	}
	_ = answer.Body.Close()
	return fmt.Sprint(answer.StatusCode)
}

// azurite is a container in Azurite that does not exist yet.
type azurite struct{ *Container }

// startAzurite starts the emulator, which ends with the test. The emulator accepts tokens without checking their
// signatures.
func startAzurite(t *testing.T, program string) azurite {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "--blobPort", "0", "--location", dir, "--cert", filepath.Join(dir, "cert.pem"), "--key", filepath.Join(dir, "key.pem"), "--oauth", "basic") //nolint:gosec // it is ended gently
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	at := ""
	for lines := bufio.NewScanner(out); at == "" && lines.Scan(); {
		_, at, _ = strings.Cut(lines.Text(), "successfully listens on ")
	}
	roots := x509.NewCertPool()
	if at == "" || !roots.AppendCertsFromPEM(cert) {
		t.Fatal("it does not listen")
	}
	claims, err := json.Marshal(map[string]any{
		"aud": Scope, "iss": "https://sts.windows.net/tenant/", "iat": time.Now().Unix() - 60, "nbf": time.Now().Unix() - 60, "exp": time.Now().Unix() + 3600,
	})
	if err != nil {
		t.Fatal(err)
	}
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"typ":"JWT","alg":"RS256"}`)) + "." + part(claims) + "." + part([]byte("signature"))
	return azurite{&Container{
		URL: at + "/" + azuriteAccount + "/pods", Token: func(context.Context) (string, error) { return token, nil },
		HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}},
	}}
}
