// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/azblobs"
	"github.com/virtual-kubelet/virtual-kubelet/providers/internal/podjob"
)

func init() { podjob.Main(Host, func([]string) error { return run() }) }

// maxRoot is how long the path of a directory may be in which a directory of podjob has a socket, whose path has 107 bytes at most.
const maxRoot = 80

// lastTime bounds the last write of a program that failed.
const lastTime = 10 * time.Second

// run runs the pod of the package in the working directory.
func run() error {
	data, err := os.ReadFile(PackageFile)
	if err != nil {
		return err
	}
	var p Package
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("read %s: %w", PackageFile, err)
	}
	// What it has is secret, and a later run reads it no more: Batch downloads it again.
	if err := os.Remove(PackageFile); err != nil {
		return err
	}
	root := os.Getenv("AZ_BATCH_NODE_ROOT_DIR")
	if root != "" && len(root) <= maxRoot { // it is on the disk for data of the machine, where there is one
		if err := os.Setenv("TMPDIR", root); err != nil {
			return err
		}
	}
	logs, err := filepath.Abs("logs")
	if err != nil {
		return err
	}
	token := &machineToken{identity: p.Identity}
	h := newPlace(p, &azblobs.Container{URL: p.ContainerURL, HTTP: &http.Client{Timeout: lastTime}, Token: token.get}, logs)
	ctx, cancel := context.WithCancel(context.Background())
	var beside sync.WaitGroup
	beside.Go(func() { h.logs.run(ctx, p.Every) })
	err = podjob.Run(ctx, podjob.Config{
		Host: h, Job: os.Getenv("AZ_BATCH_TASK_ID"), Machine: os.Getenv("AZ_BATCH_NODE_ID"), LogDir: logs, Hide: root, LookEvery: p.Every,
	})
	cancel()
	beside.Wait()
	if errors.Is(err, ErrClaimed) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(ExitClaimed)
	}
	if err != nil {
		last, cancel := context.WithTimeout(context.Background(), lastTime)
		defer cancel()
		err = errors.Join(err, h.failed(last, err))
	}
	return err
}

// machineToken is a token of the metadata service of this machine, which all programs of the machine may ask.
type machineToken struct {
	identity string

	mu    sync.Mutex
	token string    // guarded by mu
	until time.Time // guarded by mu
}

// metadata is where that service is; a variable that the SDK of Azure has, too, says otherwise.
const metadata = "http://169.254.169.254"

func (m *machineToken) get(ctx context.Context) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Now().Before(m.until) {
		return m.token, nil
	}
	base := os.Getenv("AZURE_POD_IDENTITY_AUTHORITY_HOST")
	if base == "" {
		base = metadata
	}
	q := url.Values{"api-version": {"2018-02-01"}, "resource": {azblobs.Scope}, "msi_res_id": {m.identity}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metadata/identity/oauth2/token?"+q.Encode(), nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Metadata", "true")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", fmt.Errorf("ask this machine for a token of %s: %w", m.identity, err)
	}
	defer answer.Body.Close()
	var said struct {
		Token  string      `json:"access_token"`
		Expire json.Number `json:"expires_in"`
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(answer.Body).Decode(&said) != nil || said.Token == "" {
		return "", fmt.Errorf("ask this machine for a token of %s: it answers %d: assign the identity to the pool", m.identity, answer.StatusCode)
	}
	seconds, _ := said.Expire.Int64() // one that is not said is asked for again
	m.token, m.until = said.Token, time.Now().Add(time.Duration(seconds)*time.Second-5*time.Minute)
	return m.token, nil
}
