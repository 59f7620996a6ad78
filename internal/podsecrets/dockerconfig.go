// SPDX-License-Identifier: Apache-2.0

package podsecrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Login is a login at a registry.
type Login struct {
	Registry                     string
	Username, Password           string
	IdentityToken, RegistryToken string
}

// dockerAuth is one entry of a Docker configuration.
type dockerAuth struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
	RegistryToken string `json:"registrytoken"`
}

// errJSON replaces the error of the decoder, which may contain secret content.
var errJSON = errors.New("it is no JSON of that form")

// readLogins reads a Secret of one of the two registry types. Its errors contain no content of the Secret.
func readLogins(secret *corev1.Secret) ([]Login, error) {
	auths := map[string]dockerAuth{}
	switch secret.Type {
	case corev1.SecretTypeDockerConfigJson:
		var config struct {
			Auths map[string]dockerAuth `json:"auths"`
		}
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigJsonKey], &config); err != nil {
			return nil, fmt.Errorf("key %s: %w", corev1.DockerConfigJsonKey, errJSON)
		}
		auths = config.Auths
	case corev1.SecretTypeDockercfg:
		if err := json.Unmarshal(secret.Data[corev1.DockerConfigKey], &auths); err != nil {
			return nil, fmt.Errorf("key %s: %w", corev1.DockerConfigKey, errJSON)
		}
	default:
		return nil, fmt.Errorf("its type is %s, want %s or %s", secret.Type, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)
	}
	var all []Login
	for registry, auth := range auths {
		login := Login{Registry: registry, Username: auth.Username, Password: auth.Password, IdentityToken: auth.IdentityToken, RegistryToken: auth.RegistryToken}
		if auth.Auth != "" {
			var ok bool
			if login.Username, login.Password, ok = decodeAuth(auth.Auth); !ok {
				return nil, fmt.Errorf("auth of registry %q: want base64 of a user and a password with a colon between them", registry)
			}
		}
		all = append(all, login)
	}
	slices.SortFunc(all, func(a, b Login) int { return strings.Compare(a.Registry, b.Registry) })
	return all, nil
}

// decodeAuth decodes the field auth.
func decodeAuth(auth string) (user, password string, ok bool) {
	raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(auth), "="))
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(bytes.TrimRight(raw, "\x00")), ":")
	return user, password, ok
}

// secretParts returns the secret parts of a login.
func (l Login) secretParts() [][]byte {
	return [][]byte{[]byte(l.Password), []byte(l.IdentityToken), []byte(l.RegistryToken), []byte(l.Username + ":" + l.Password)}
}
