// SPDX-License-Identifier: Apache-2.0

package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/virtual-kubelet/virtual-kubelet/internal/certs/certfile"
	"github.com/virtual-kubelet/virtual-kubelet/log"
)

// redacted is the printed form of a secret.
const redacted = "[redacted]"

// Secret is a password, a token or a key. Only Value returns it. Printing, logging or marshalling a Secret, or a
// struct with it, shows "[redacted]" or nothing.
//
// A configuration contains the value itself, or its location:
//
//	token: {file: /run/secrets/token}   # read again when the file changes; line ends at its end do not count
//	token: {env: SERVICE_TOKEN}         # read once
//	token: "..."
//
// The zero Secret is not set.
type Secret struct {
	// read is a function, so that reflection over a struct never finds the value.
	read func(context.Context) string
}

// Literal returns a Secret with the given value.
func Literal(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{read: func(context.Context) string { return value }}
}

// IsSet reports whether there is a value.
func (s Secret) IsSet() bool { return s.read != nil }

// Value returns the current value, "" if it is not set. Call it for each request, and do not store the result. If a file has become
// unreadable or empty, Value returns the last value, and logs this once. It is safe for concurrent use.
func (s Secret) Value(ctx context.Context) string {
	if s.read == nil {
		return ""
	}
	return s.read(ctx)
}

// UnmarshalText sets the value. The printed form of a Secret is an error.
func (s *Secret) UnmarshalText(text []byte) error {
	if string(text) == redacted {
		return fmt.Errorf("the secret itself is missing: this is %s, as it is shown", redacted)
	}
	*s = Literal(string(text))
	return nil
}

// UnmarshalJSON sets the value itself, or an object with the name of its file or environment variable.
func (s *Secret) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		return s.UnmarshalText([]byte(text))
	}
	// The error of the decoder could quote the secret.
	const want = "want the secret as text, or where it is: {file: PATH} or {env: NAME}"
	var from map[string]string
	if json.Unmarshal(data, &from) != nil || len(from) != 1 {
		return errors.New(want)
	}
	place := slices.Collect(maps.Keys(from))[0]
	switch place {
	case "file":
		return s.follow(from[place])
	case "env":
		*s = Literal(os.Getenv(from[place]))
		if !s.IsSet() {
			return fmt.Errorf("environment variable %s is not set", from[place])
		}
		return nil
	default:
		return fmt.Errorf("unknown field %q: %s", place, want)
	}
}

// follow makes s return the content of a file.
func (s *Secret) follow(path string) error {
	file, err := certfile.Follow(func(contents [][]byte) (string, error) {
		value := strings.TrimRight(string(contents[0]), "\r\n")
		if value == "" {
			return "", errors.New("the file is empty")
		}
		return value, nil
	}, path)
	if err != nil {
		return err
	}
	s.read = func(ctx context.Context) string {
		value, err := file.Current()
		if err != nil {
			log.G(ctx).WithError(err).Warn("The secret that was read before stays in use")
		}
		return value
	}
	return nil
}

// String returns "[redacted]", or "" if there is no value.
func (s Secret) String() string {
	if s.read == nil {
		return ""
	}
	return redacted
}

// GoString returns the same as String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(state fmt.State, _ rune) { _, _ = io.WriteString(state, s.String()) }

// LogValue returns the same text as String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the same text as String, for JSON, YAML and all other formats.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
