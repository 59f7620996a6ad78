// SPDX-License-Identifier: Apache-2.0

package image

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	keyFile = "key"
	suffix  = ".json"
	// pulling begins the names of files for pulls in progress.
	pulling = "pulling-"
	// maxCredentials is the maximum number of recorded credentials of an image; the newest are kept.
	maxCredentials = 64
)

// pulls records the images pulled for pods, and the credentials. The records outlive the process, because an image without a record is available to
// all pods. A credential is stored as a digest with a key of this node, so the files cannot be used to guess passwords elsewhere. If a file is
// unreadable, pods need the registry's permission for its image.
type pulls struct {
	dir string // "" means no files
	key []byte

	mu  sync.Mutex
	all map[string]pull // guarded by mu: by fileOf the image's ID
	// changes counts the changes of the records; guarded by mu
	changes int
	now     map[string]intent // guarded by mu; pulls in progress and lost pulls, by fileOf of the name
}

// intent is a pull whose outcome is not known yet, or never will be.
type intent struct {
	running int
	// lost means that a pull ended without a recorded result: the image may exist, and until the next pull, pods need the registry's permission for
	// it.
	lost bool
}

// outcome is the outcome of a pull.
type outcome int

const (
	unheard  outcome = iota // the process ended, or the response was lost
	refused                 // the runtime reported that the pull failed
	recorded                // the pods with access to the image are recorded
)

// pull is a pulled image.
type pull struct {
	ID string `json:"id"`
	// Uses are keyed by repository, because a pod with access to one repository may have no access to another one with the same image.
	Uses map[string]use `json:"uses"`
}

// use is the access to an image by the name of a repository.
type use struct {
	Anybody     bool     `json:"anybody,omitempty"`
	Credentials []string `json:"credentials,omitempty"`
}

func (u use) hasCredential(digest string) bool { return slices.Contains(u.Credentials, digest) }

// openPulls reads the records of an earlier process.
func openPulls(dir string) (*pulls, error) {
	p := &pulls{dir: dir, all: map[string]pull{}, now: map[string]intent{}}
	if dir == "" {
		p.key = []byte(rand.Text())
		return p, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok {
			continue
		}
		if image, ok := strings.CutPrefix(name, pulling); ok {
			p.now[image] = intent{lost: true}
			continue
		}
		var one pull
		if data, err := os.ReadFile(filepath.Join(dir, e.Name())); err != nil || json.Unmarshal(data, &one) != nil || fileOf(one.ID) != name {
			one = pull{}
		}
		p.all[name] = one
	}
	p.key, err = os.ReadFile(filepath.Join(dir, keyFile))
	if err == nil && len(p.key) > 0 {
		return p, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	p.key = []byte(rand.Text())
	return p, p.writeFile(keyFile, p.key)
}

// fileOf returns the name of the file about an image, or about the name of an image, without its suffix.
func fileOf(image string) string {
	sum := sha256.Sum256([]byte(image))
	return hex.EncodeToString(sum[:])
}

// credentialDigest returns the digest of a credential.
func (p *pulls) credentialDigest(auth *runtimeapi.AuthConfig) string {
	sum := hmac.New(sha256.New, p.key)
	for _, s := range []string{auth.GetUsername(), auth.GetPassword(), auth.GetIdentityToken(), auth.GetRegistryToken()} {
		fmt.Fprintf(sum, "%d:%s", len(s), s)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// findUse returns the access to the image by that name. It returns false if the image was never pulled here.
func (p *pulls) findUse(id, name string) (use, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one, known := p.all[fileOf(id)]
	if !known {
		_, known = p.now[fileOf(name)]
	}
	return one.Uses[repositoryOf(name)], known
}

// beginPull records a pull that is about to start. The caller must call end. If the process ends earlier, the outcome stays unknown.
func (p *pulls) beginPull(name string) (end func(outcome), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	file := fileOf(name)
	is, noted := p.now[file]
	if !noted {
		if err := p.writeFile(pulling+file+suffix, []byte("{}")); err != nil {
			return nil, err
		}
	}
	is.running++
	p.now[file] = is
	return func(how outcome) {
		p.mu.Lock()
		defer p.mu.Unlock()
		is := p.now[file]
		is.running--
		switch how {
		case unheard:
			is.lost = true
		case recorded:
			is.lost = false
		case refused: // the outcome of an earlier pull is as unknown as before
		}
		p.now[file] = is
		if is == (intent{}) && p.removeFile(pulling+file+suffix) == nil {
			delete(p.now, file)
		}
	}, nil
}

// recordPulled records a pull of the image by that name with auth, or without credentials.
func (p *pulls) recordPulled(id, name string, auth *runtimeapi.AuthConfig) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changes++
	file, one := fileOf(id), pull{ID: id, Uses: map[string]use{}}
	for repository, u := range p.all[file].Uses {
		one.Uses[repository] = u
	}
	u := one.Uses[repositoryOf(name)]
	switch digest := p.credentialDigest(auth); {
	case u.Anybody, auth != nil && u.hasCredential(digest):
		return nil
	case auth == nil:
		u = use{Anybody: true}
	default:
		// Short-lived registry tokens would accumulate for ever. A pod with a dropped token needs the registry's permission again.
		u.Credentials = append(slices.Clone(u.Credentials[max(0, len(u.Credentials)-maxCredentials+1):]), digest)
	}
	one.Uses[repositoryOf(name)] = u
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if err := p.writeFile(file+suffix, data); err != nil {
		return err
	}
	p.all[file] = one
	return nil
}

// knownFiles returns the files of all images, and the number of changes until now.
func (p *pulls) knownFiles() (map[string]bool, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	files := map[string]bool{}
	for file := range p.all {
		files[file] = true
	}
	return files, p.changes
}

// forgetFiles forgets removed images. It does nothing if records have changed since, because the images may exist again.
func (p *pulls) forgetFiles(files map[string]bool, changes int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes != changes {
		return nil
	}
	var errs []error
	for file := range files {
		if err := p.removeFile(file + suffix); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(p.all, file)
	}
	return errors.Join(errs...)
}

// writeFile replaces a file durably: it survives a power loss.
func (p *pulls) writeFile(name string, data []byte) error {
	if p.dir == "" {
		return nil
	}
	f, err := os.CreateTemp(p.dir, ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // after a success the file has another name
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(p.dir, name)); err != nil {
		return err
	}
	dir, err := os.Open(p.dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (p *pulls) removeFile(name string) error {
	if p.dir == "" {
		return nil
	}
	if err := os.Remove(filepath.Join(p.dir, name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
