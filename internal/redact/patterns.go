// SPDX-License-Identifier: Apache-2.0

package redact

import "regexp"

// mark replaces removed text.
const mark = "[redacted]"

// hint matches every text that a pattern can match. Most texts do not match it, and need only this check.
var hint = regexp.MustCompile(`(?i)eyJ|bearer|authorization|://|[?&][^=\s]*=|private key|passw|secret|token`)

// patterns find credentials by their format.
var patterns = []struct {
	find *regexp.Regexp
	put  string
}{
	{regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`), mark},
	{regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)?`), mark}, // a JSON web token
	{regexp.MustCompile(`(?i)\b(authorization["']?\s*[:=]\s*[\["']*)(?:(?:basic|bearer|negotiate|digest)\s+)?[^\s"'\]]+`), "${1}" + mark},
	{regexp.MustCompile(`(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{16,}`), "${1}" + mark},
	{regexp.MustCompile(`(?i)\b([a-z][a-z0-9+.-]*://)[^\s/"<>]+@`), "${1}" + mark + "@"},
	{regexp.MustCompile(`(?i)([?&](?:[a-z0-9_-]*(?:token|passw(?:or)?d|secret|signature|credential|api[_-]?key)|sig)=)[^&\s"']+`), "${1}" + mark},
	{regexp.MustCompile(`(?i)((?:passw(?:or)?d|secret|identity_?token|(?:access|refresh|id)_?token|secret_?(?:access_?)?key)["']?\s*(?:=|"\s*:)\s*)("(?:[^"\\]|\\.)*"|[^\s,;}&"]+)`), "${1}" + mark},
}

// redactPatterns removes text that looks like a credential.
func redactPatterns(text string) string {
	if !hint.MatchString(text) {
		return text
	}
	for _, p := range patterns {
		text = p.find.ReplaceAllString(text, p.put)
	}
	return text
}
