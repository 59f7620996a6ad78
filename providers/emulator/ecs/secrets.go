// SPDX-License-Identifier: Apache-2.0

package ecs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// secret is a secret of Secrets Manager.
type secret struct {
	arn, text string
	binary    []byte
	leaving   bool // scheduled for deletion
	tags      any
	// times; the last one is a day
	created, changed, accessed time.Time
}

var errLeaving = refusal{"InvalidRequestException", "You can't perform this operation on the secret because it was marked for deletion."}

func (s *Server) createSecret(body []byte) (any, error) {
	var in struct {
		Name, SecretString string
		SecretBinary       []byte
		Tags               any
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	if len(s.secrets) >= s.config.Secrets {
		return nil, refusal{"LimitExceededException", "The request failed because it would exceed one of the Secrets Manager quotas."}
	}
	if one := s.secrets[in.Name]; one != nil && one.leaving {
		return nil, refusal{"InvalidRequestException", "You can't create this secret because a secret with this name is already scheduled for deletion."}
	}
	if s.secrets[in.Name] != nil {
		return nil, refusal{"ResourceExistsException", "The operation failed because the secret " + in.Name + " already exists."}
	}
	if (in.SecretString == "") == (in.SecretBinary == nil) || len(in.SecretString) > 65536 {
		return nil, refusal{"InvalidParameterException", "want a text or bytes, at most 65536"}
	}
	s.last++ // a new secret of the same name has another ARN
	made := &secret{arn: s.arnOf("secretsmanager", fmt.Sprintf("secret:%s-%06d", in.Name, s.last%1000000)), text: in.SecretString, binary: in.SecretBinary, tags: in.Tags}
	made.created, made.changed = time.Now(), time.Now()
	s.secrets[in.Name] = made
	return map[string]any{"ARN": made.arn, "Name": in.Name}, nil
}

// findSecret returns a secret by name or ARN. The caller holds s.mu.
func (s *Server) findSecret(id string) (*secret, error) {
	for name, one := range s.secrets {
		if name == id || one.arn == id {
			return one, nil
		}
	}
	return nil, refusal{"ResourceNotFoundException", "Secrets Manager can't find the specified secret."}
}

// openSecret returns a secret that is open to reads and writes. The caller holds s.mu.
func (s *Server) openSecret(id string) (*secret, error) {
	one, err := s.findSecret(id)
	if err == nil && one.leaving {
		return nil, errLeaving
	}
	return one, err
}

func (s *Server) describeSecret(body []byte) (any, error) {
	var in struct{ SecretID string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, err := s.findSecret(in.SecretID)
	if err != nil {
		return nil, err
	}
	return map[string]any{"ARN": one.arn}, nil
}

func (s *Server) getSecretValue(body []byte) (any, error) {
	var in struct{ SecretID string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, err := s.openSecret(in.SecretID)
	if err != nil {
		return nil, err
	}
	one.recordAccess()
	out := map[string]any{"ARN": one.arn}
	if one.binary != nil {
		out["SecretBinary"] = one.binary
	} else {
		out["SecretString"] = one.text
	}
	return out, nil
}

func (s *Server) putSecretValue(body []byte) (any, error) {
	var in struct {
		SecretID     string
		SecretString string
		SecretBinary []byte
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, err := s.openSecret(in.SecretID)
	if err != nil {
		return nil, err
	}
	one.text, one.binary, one.changed = in.SecretString, in.SecretBinary, time.Now()
	return map[string]any{"ARN": one.arn}, nil
}

// deleteSecret removes a secret at once, or schedules the deletion, so that the secret can be restored. Here it can be restored without a
// time limit. Like the service, deleteSecret reports a missing secret only for a scheduled deletion.
func (s *Server) deleteSecret(body []byte) (any, error) {
	var in struct {
		SecretID                   string
		ForceDeleteWithoutRecovery bool
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, err := s.findSecret(in.SecretID)
	if err != nil && !in.ForceDeleteWithoutRecovery {
		return nil, err
	}
	if !in.ForceDeleteWithoutRecovery {
		one.leaving = true
		return map[string]any{"ARN": one.arn}, nil
	}
	for name, other := range s.secrets {
		if other == one {
			delete(s.secrets, name)
		}
	}
	return map[string]any{}, nil
}

func (s *Server) restoreSecret(body []byte) (any, error) {
	var in struct{ SecretID string }
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	one, err := s.findSecret(in.SecretID)
	if err != nil {
		return nil, err
	}
	one.leaving = false
	return map[string]any{"ARN": one.arn}, nil
}

// recordAccess records that a secret is read. The service reports only the day.
func (s *secret) recordAccess() { s.accessed = time.Now().UTC().Truncate(24 * time.Hour) }

// listSecrets filters by prefixes of names alone. The service may leave out changes of the last five minutes;
// this server does not.
func (s *Server) listSecrets(body []byte) (any, error) {
	var in struct {
		Filters []struct {
			Key    string
			Values []string
		}
		IncludePlannedDeletion bool
		MaxResults             *int
		NextToken              string
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	names := []string{}
	for name, one := range s.secrets {
		matches := true
		for _, f := range in.Filters {
			if f.Key != "name" {
				return nil, refusal{"InvalidParameterException", "this server filters by name alone"}
			}
			matches = matches && slices.ContainsFunc(f.Values, func(v string) bool { return strings.HasPrefix(name, v) })
		}
		if matches && (in.IncludePlannedDeletion || !one.leaving) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	page, next := pageOf(names, in.NextToken, in.MaxResults, 100)
	list := []any{}
	for _, name := range page {
		one := s.secrets[name]
		entry := map[string]any{"ARN": one.arn, "Name": name, "CreatedDate": unixTime(one.created), "LastChangedDate": unixTime(one.changed), "Tags": one.tags}
		if !one.accessed.IsZero() {
			entry["LastAccessedDate"] = unixTime(one.accessed)
		}
		list = append(list, entry)
	}
	out := map[string]any{"SecretList": list}
	if next != "" {
		out["NextToken"] = next
	}
	return out, nil
}

// Secrets returns the names of the secrets that are not scheduled for deletion, for tests.
func (s *Server) Secrets() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, one := range s.secrets {
		if !one.leaving {
			names = append(names, name)
		}
	}
	return names
}

// secretValue returns the value of a secret in a definition. from has the ARN, a key of a JSON object, and nothing for
// stage and version. An ARN alone means the whole secret. The caller holds s.mu.
func (s *Server) secretValue(from string) (string, error) {
	if one, err := s.findSecret(from); err == nil && !one.leaving {
		one.recordAccess()
		return one.text, nil
	}
	arn, key, ok := cutLast(strings.TrimSuffix(from, "::"))
	if !ok {
		return "", fmt.Errorf("secret %s: want an ARN with a key", from)
	}
	one, err := s.openSecret(arn)
	if err != nil {
		return "", err
	}
	one.recordAccess()
	values := map[string]string{}
	if err := json.Unmarshal([]byte(one.text), &values); err != nil {
		return "", fmt.Errorf("secret %s is no JSON object", arn)
	}
	value, ok := values[key]
	if !ok {
		return "", fmt.Errorf("secret %s has no key %s", arn, key)
	}
	return value, nil
}

func cutLast(text string) (before, after string, ok bool) {
	i := strings.LastIndex(text, ":")
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}
