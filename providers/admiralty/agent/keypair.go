// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"crypto/tls"
	"errors"
	"os"
	"sync"
	"time"
)

// keyPair is a certificate with its key. It rereads the files only after a change, because a busy API server
// opens many connections.
type keyPair struct {
	cert, key string // files

	mu    sync.Mutex
	found [2]version       // guarded by mu; the versions read last
	pair  *tls.Certificate // guarded by mu; nil before the first read
}

// version identifies a version of a file.
type version struct {
	changed time.Time
	size    int64
}

// currentPair returns the current certificate and key. While only one of the files has been replaced, they do not
// match. Then currentPair returns the previous pair, and the next call retries.
func (k *keyPair) currentPair() (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, err := fileVersions(k.cert, k.key)
	if err == nil && k.pair != nil && found == k.found {
		return k.pair, nil
	}
	var pair tls.Certificate
	if err == nil {
		pair, err = tls.LoadX509KeyPair(k.cert, k.key)
	}
	switch {
	case err == nil:
		k.pair, k.found = &pair, found
	case k.pair == nil:
		return nil, err
	}
	return k.pair, nil
}

func fileVersions(cert, key string) (found [2]version, err error) {
	for i, path := range []string{cert, key} {
		info, failed := os.Stat(path)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		found[i] = version{info.ModTime(), info.Size()}
	}
	return found, err
}
