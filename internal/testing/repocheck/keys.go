// SPDX-License-Identifier: Apache-2.0

package repocheck

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// keyMaterial has patterns of secrets, by their kind. The text around a secret in a program, such as the first
// line of a PEM block, is no secret: there must be content.
var keyMaterial = map[string]*regexp.Regexp{
	"a private key":                        regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\\nr"'+` + "`" + `]*[A-Za-z0-9+/]{40,}`),
	"the key of a kubeconfig":              regexp.MustCompile(`client-key-data["']?:\s*["']?[A-Za-z0-9+/=]{40,}`),
	"the token or password of a user":      regexp.MustCompile(`(?m)^\s*["']?(token|password)["']?:\s*["']?[A-Za-z0-9+/=_.-]{32,}["']?,?\s*$`),
	"a JSON Web Token":                     regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`),
	"an access key of a cloud":             regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b`),
	"a token of a code or package service": regexp.MustCompile(`\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36}|xox[abprs]-[A-Za-z0-9-]{20,})`),
	"the auth of a container registry":     regexp.MustCompile(`"auth"\s*:\s*"[A-Za-z0-9+/]{24,}={0,2}"`),
}

// keyFiles are names of files with key material only.
var keyFiles = regexp.MustCompile(`(?i)(^|/)(id_(rsa|dsa|ecdsa|ed25519)|[^/]*\.(key|p12|pfx|jks|keystore|kdbx)|kubeconfig|\.netrc|\.npmrc|\.dockercfg)$`)

// KeyMaterial checks that no file of the repository, of any kind, holds a secret.
func (t *Tree) KeyMaterial(ctx context.Context) (breaches []string, err error) {
	files, err := t.committedFiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(t.Root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		breaches = append(breaches, keysIn(name, data)...)
	}
	return breaches, nil
}

// committedFiles lists the files in git, of any kind. Uncommitted files count, ignored files do not.
func (t *Tree) committedFiles(ctx context.Context) (files []string, err error) {
	out, err := exec.CommandContext(ctx, "git", "-C", t.Root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of the repository: %w", err)
	}
	for name := range strings.SplitSeq(string(out), "\x00") {
		if name == "" {
			continue
		}
		info, err := os.Stat(filepath.Join(t.Root, filepath.FromSlash(name)))
		if os.IsNotExist(err) || err == nil && info.IsDir() {
			continue // deleted, but the deletion is not committed
		}
		if err != nil {
			return nil, err
		}
		files = append(files, name)
	}
	if len(files) < len(t.Files) {
		return nil, fmt.Errorf("git lists %d files, fewer than there are Go files", len(files))
	}
	return files, nil
}

// keysIn returns the places of secrets in a file, without the secrets.
func keysIn(name string, data []byte) (breaches []string) {
	if keyFiles.MatchString(name) {
		breaches = append(breaches, name+": has the name of a file with key material; make it where it is needed")
	}
	for what, pattern := range keyMaterial {
		if at := pattern.FindIndex(data); at != nil {
			line := 1 + bytes.Count(data[:at[0]], []byte("\n"))
			breaches = append(breaches, fmt.Sprintf("%s:%d: looks like %s: revoke it, and make it where it is needed", name, line, what))
		}
	}
	return breaches
}
